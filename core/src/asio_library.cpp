// The compiled half of Asio, once for the library and everything that links it.
#include <boost/asio/impl/src.hpp>
