#include "cli/open.hpp"

#include <gtest/gtest.h>

namespace stint::cli {
namespace {

TEST(Open, the_token_is_in_the_fragment_only) {
  EXPECT_EQ(dashboard_address("http://127.0.0.1:7717", "secret"), "http://127.0.0.1:7717/#token=secret");
  EXPECT_EQ(dashboard_address("http://127.0.0.1:7717", "secret", "abc"),
            "http://127.0.0.1:7717/#/run/abc?token=secret");
  EXPECT_EQ(dashboard_address("http://[::1]:80", ""), "http://[::1]:80/");
  EXPECT_EQ(dashboard_address("http://[::1]:80", "", "abc"), "http://[::1]:80/#/run/abc");
}

}  // namespace
}  // namespace stint::cli
