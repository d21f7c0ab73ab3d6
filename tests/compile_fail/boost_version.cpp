// A program that includes another Boost than the one compiled into the library is refused.
//
// MISTAKE 1: stint was built with another version of Boost
#if MISTAKE == 1
#define STINT_BOOST_VERSION 1
#endif
#include "stint/asio.hpp"
