#include "domain/fleet_event.hpp"

#include <gtest/gtest.h>

namespace stint::domain {
namespace {

TEST(FleetEvent, data_is_json_whatever_a_name_contains) {
  EXPECT_EQ(limit_data("gpu", 2), R"({"limit":"gpu","capacity":2})");
  EXPECT_EQ(limit_data("gpu", std::nullopt), R"({"limit":"gpu","capacity":null})");
  EXPECT_EQ(pause_data("a\"b\\c\n", 5), R"({"limit":"a\"b\\c\u000a","for_ms":5})");
  EXPECT_EQ(resume_data("gpu", 3), R"({"limit":"gpu","woken":3})");
  EXPECT_EQ(node_data("host:1", 2), R"({"label":"host:1","lost":2})");
  EXPECT_EQ(scale_data(4), R"({"workers":4})");
  EXPECT_EQ(drain_data("finishing"), R"({"phase":"finishing"})");
  EXPECT_EQ(reload_data(7), R"({"agents":7})");
}

}  // namespace
}  // namespace stint::domain
