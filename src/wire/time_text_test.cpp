#include "wire/time_text.hpp"

#include <gtest/gtest.h>

namespace stint::wire {
namespace {

WallTime ms(std::int64_t count) { return WallTime(std::chrono::milliseconds(count)); }

TEST(TimeText, comes_back_as_it_was) {
  for (const std::int64_t each : {0LL, 999LL, 1'700'000'000'007LL, 4'102'444'799'999LL, -1LL}) {
    EXPECT_EQ(parse_time(time_text(ms(each))), ms(each)) << time_text(ms(each));
  }
  EXPECT_EQ(time_text(ms(1'700'000'000'007)), "2023-11-14T22:13:20.007Z");
}

TEST(TimeText, offsets_and_fractions) {
  EXPECT_EQ(parse_time("2023-11-14T22:13:20Z"), ms(1'700'000'000'000));
  EXPECT_EQ(parse_time("2023-11-15T00:13:20.5+02:00"), ms(1'700'000'000'500));
  EXPECT_EQ(parse_time("2023-11-14 17:43:20.0079999-04:30"), ms(1'700'000'000'007));
}

TEST(TimeText, invalid_times) {
  for (const char* const bad :
       {"", "now", "2023-11-14", "2023-11-14T22:13:20", "2023-02-29T00:00:00Z", "2023-11-14T24:00:00Z",
        "2023-11-14T22:13:20.Z", "2023-11-14T22:13:20Zx", "2023-11-14T22:13:20+25:00", "-023-11-14T22:13:20Z"}) {
    EXPECT_EQ(parse_time(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace stint::wire
