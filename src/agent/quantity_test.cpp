#include "agent/quantity.hpp"

#include <gtest/gtest.h>

namespace stint::agent {
namespace {

using namespace std::chrono_literals;

TEST(Quantity, durations) {
  EXPECT_EQ(parse_duration("20m").value(), 20min);
  EXPECT_EQ(parse_duration("500ms").value(), 500ms);
  EXPECT_EQ(parse_duration("1h30m").value(), 90min);
  EXPECT_EQ(parse_duration("1.5h").value(), 90min);
  EXPECT_EQ(parse_duration("0.1s").value(), 100ms);
  EXPECT_EQ(parse_duration("30d").value(), 720h);
  EXPECT_EQ(parse_duration("1d2h3m4s5ms").value(), 26h + 3min + 4s + 5ms);
  EXPECT_EQ(parse_duration("0").value(), 0s);
  for (const char* const bad : {"", "20", "m", "-5m", "5 m", "1m1h", "1m1m", "5x", "1.m", ".5m", "1e3s", "367d",
                                "999999999999999999999s", "9223372036854775807d", "1.2.3s", "5M", "\u00A05m"}) {
    EXPECT_FALSE(parse_duration(bad)) << bad;
  }
}

TEST(Quantity, counts) {
  EXPECT_EQ(parse_count("3").value(), 3);
  EXPECT_EQ(parse_count("400k").value(), 400'000);
  EXPECT_EQ(parse_count("2M").value(), 2'000'000);
  EXPECT_EQ(parse_count("1.5M").value(), 1'500'000);
  EXPECT_EQ(parse_count("1_000").value(), 1000);
  EXPECT_EQ(parse_count("1G").value(), 1'000'000'000);
  for (const char* const bad :
       {"", "k", "-1", "1.5", "1.0001k", "1kk", "_1", "1_", "0x10", "999999999999999999", "1 k"}) {
    EXPECT_FALSE(parse_count(bad)) << bad;
  }
}

TEST(Quantity, cost) {
  EXPECT_EQ(parse_cost("2.50").value(), 2'500'000);
  EXPECT_EQ(parse_cost("$2").value(), 2'000'000);
  EXPECT_EQ(parse_cost("0.000001").value(), 1);
  EXPECT_EQ(parse_cost("0.1").value(), 100'000);  // exact, not 0.1 of a double
  EXPECT_EQ(parse_cost("1.0000000").value(), 1'000'000);
  for (const char* const bad :
       {"", "$", "-2", "2,50", "0.0000001", "2.5e3", "999999999999999999", "1.", "0.00000001"}) {
    EXPECT_FALSE(parse_cost(bad)) << bad;
  }
}

TEST(Quantity, integer_errors_name_the_bound) {
  EXPECT_EQ(parse_integer("-3", -5, 5).value(), -3);
  EXPECT_EQ(parse_integer("0", 1, 5).error().what(), "must be at least 1, found 0");
  EXPECT_EQ(parse_integer("99999999999999999999999", 1, 5).error().what(),
            "must be at most 5, found 99999999999999999999999");
  EXPECT_EQ(parse_integer("-99999999999999999999999", 1, 5).error().what(),
            "must be at least 1, found -99999999999999999999999");
  EXPECT_EQ(parse_integer("1.5", 1, 5).error().what(), "expected a whole number, found '1.5'");
}

TEST(Quantity, printed_quantities_parse_again) {
  for (const Duration duration :
       {Duration(0s), Duration(1ms), Duration(90min), Duration(720h), Duration(26h + 3min + 4s + 5ms)}) {
    EXPECT_EQ(parse_duration(format_duration(duration)).value(), duration) << format_duration(duration);
  }
  EXPECT_EQ(format_duration(90min), "1h30m");
  for (const std::int64_t micros : {1L, 100'000L, 2'500'000L, 50'000'000L}) {
    EXPECT_EQ(parse_cost(format_cost(micros)).value(), micros) << format_cost(micros);
  }
  EXPECT_EQ(format_cost(50'000'000), "50.00");
}

}  // namespace
}  // namespace stint::agent
