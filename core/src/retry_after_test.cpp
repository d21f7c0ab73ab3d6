#include "stint/retry_after.hpp"

#include <gtest/gtest.h>

#include <string>

namespace stint {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;

constexpr WallTime kToday = sys_days(2025y / 11 / 15) + 9h + 30min;

ServerDelay wait(Duration duration) { return {.kind = ServerDelay::Kind::wait, .wait = duration}; }
constexpr ServerDelay kNone{};
constexpr ServerDelay kStop{.kind = ServerDelay::Kind::stop};

// Behaviour 106, form by form.

TEST(RetryAfter, reads_seconds) {
  EXPECT_EQ(parse_retry_after("3", kToday), wait(3s));
  EXPECT_EQ(parse_retry_after("0", kToday), wait(0s));
  EXPECT_EQ(parse_retry_after("00120", kToday), wait(2min));
  EXPECT_EQ(parse_retry_after(" \t3 \r\n", kToday), wait(3s));
}

TEST(RetryAfter, reads_fractions_and_rounds_them_up) {
  EXPECT_EQ(parse_retry_after("1.5", kToday), wait(1500ms));
  EXPECT_EQ(parse_retry_after("0.000000001", kToday), wait(1ns));
  EXPECT_EQ(parse_retry_after("0.0000000001", kToday), wait(1ns));
  EXPECT_EQ(parse_retry_after(".5", kToday), wait(500ms));
  EXPECT_EQ(parse_retry_after("2.", kToday), wait(2s));
}

TEST(RetryAfter, reads_milliseconds) {
  EXPECT_EQ(parse_retry_after_ms("1500"), wait(1500ms));
  EXPECT_EQ(parse_retry_after_ms(" 0.25 "), wait(250us));
  EXPECT_EQ(parse_retry_after_ms("-1"), kNone);
  EXPECT_EQ(parse_retry_after_ms("Sun, 06 Nov 1994 08:49:37 GMT"), kNone);
}

TEST(RetryAfter, reads_the_three_forms_of_an_http_date) {
  EXPECT_EQ(parse_retry_after("Sat, 15 Nov 2025 09:30:20 GMT", kToday), wait(20s));
  EXPECT_EQ(parse_retry_after("Saturday, 15-Nov-25 09:31:00 GMT", kToday), wait(1min));
  EXPECT_EQ(parse_retry_after("Sat Nov 15 10:30:00 2025", kToday), wait(1h));
  EXPECT_EQ(parse_retry_after("Mon Dec  1 09:30:00 2025", kToday), wait(16 * 24h));
  EXPECT_EQ(parse_retry_after("sat, 15 nov 2025 09:30:01 gmt", kToday), wait(1s));
}

TEST(RetryAfter, a_past_date_is_a_wait_of_zero) {
  EXPECT_EQ(parse_retry_after("Sat, 15 Nov 2025 09:29:59 GMT", kToday), wait(0s));
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", kToday), wait(0s));
  EXPECT_EQ(parse_retry_after("Sunday, 06-Nov-94 08:49:37 GMT", kToday), wait(0s)) << "94 is 1994, not 2094";
}

TEST(RetryAfter, the_century_of_two_digits_is_decided_by_fifty_years) {
  EXPECT_EQ(parse_http_date("Sunday, 06-Nov-75 08:49:37 GMT", kToday), sys_days(2075y / 11 / 6) + 8h + 49min + 37s);
  EXPECT_EQ(parse_http_date("Sunday, 06-Nov-76 08:49:37 GMT", kToday), sys_days(1976y / 11 / 6) + 8h + 49min + 37s);
}

TEST(RetryAfter, negative_values_are_ignored_where_the_header_forbids_them) {
  EXPECT_EQ(parse_retry_after("-1", kToday), kNone);
  EXPECT_EQ(parse_retry_after("-0.5", kToday), kNone);
}

// Behaviour 107.
TEST(RetryAfter, negative_pushback_means_stop) {
  EXPECT_EQ(parse_pushback_ms("250"), wait(250ms));
  EXPECT_EQ(parse_pushback_ms("0"), wait(0s));
  EXPECT_EQ(parse_pushback_ms("-1"), kStop);
  EXPECT_EQ(parse_pushback_ms("soon"), kStop) << "gRPC: unreadable is stop too";
}

TEST(RetryAfter, unreadable_text_gives_nothing) {
  for (const char* text : {"",
                           " ",
                           "soon",
                           "3 seconds",
                           "3s",
                           "1e3",
                           "+3",
                           "0x10",
                           "inf",
                           "nan",
                           ".",
                           "1.2.3",
                           "3,5",
                           "3 4",
                           "--1",
                           "Sat, 15 Nov 2025 09:30:20",
                           "Sat, 15 Nov 2025 09:30:20 UTC",
                           "Sat, 32 Nov 2025 09:30:20 GMT",
                           "Sat, 31 Nov 2025 09:30:20 GMT",
                           "Sat, 15 Nov 2025 24:30:20 GMT",
                           "Sat, 15 Nov 2025 09:60:20 GMT",
                           "Sat, 15 Nov 2025 09:30:61 GMT",
                           "Xyz, 15 Nov 2025 09:30:20 GMT",
                           "Sat, 15 Foo 2025 09:30:20 GMT",
                           "Sat, 15 Nov 25 09:30:20 GMT",
                           "Sat Nov 15 10:30:00 2025 GMT",
                           "Sat, 29 Feb 2025 09:30:20 GMT",
                           "Sat",
                           "Sat,",
                           "Saturday, 15-Nov-2025 09:31:00 GMT",
                           "\xff\xfe"}) {
    EXPECT_EQ(parse_retry_after(text, kToday), kNone) << text;
  }
  EXPECT_EQ(parse_retry_after(std::string_view("3\0", 2), kToday), kNone);
}

TEST(RetryAfter, huge_numbers_and_far_dates_are_clamped_to_the_longest_delay) {
  EXPECT_EQ(parse_retry_after("99999999999999999999999999", kToday), wait(kServerDelayMax));
  EXPECT_EQ(parse_retry_after("9223372036854775807.99999", kToday), wait(kServerDelayMax));
  EXPECT_EQ(parse_retry_after_ms("9223372036854775808"), wait(kServerDelayMax));
  EXPECT_EQ(parse_retry_after("Fri, 31 Dec 9999 23:59:59 GMT", kToday), wait(kServerDelayMax));
  EXPECT_EQ(parse_retry_after(std::string(100'000, '9'), kToday), wait(kServerDelayMax));
  EXPECT_EQ(parse_retry_after("0." + std::string(100'000, '9'), kToday), wait(1s));
  EXPECT_LT(TimePoint(24h * 365 * 100) + kServerDelayMax, TimePoint::max()) << "may be added to any real now";
}

TEST(RetryAfter, a_leap_second_is_a_time) {
  EXPECT_EQ(parse_retry_after("Sat, 15 Nov 2025 09:30:60 GMT", kToday), wait(60s));
}

TEST(RetryAfter, a_clock_out_of_range_is_handled) {
  EXPECT_EQ(parse_retry_after("Sat, 15 Nov 2025 09:30:20 GMT", WallTime::max()), kNone);
  EXPECT_EQ(parse_retry_after("Sat, 15 Nov 2025 09:30:20 GMT", WallTime::min()), kNone);
  EXPECT_EQ(parse_reset("2025-11-15T09:31:00Z", WallTime::min()), kServerDelayMax);
  EXPECT_EQ(parse_reset("2025-11-15T09:31:00Z", WallTime::max()), Duration());
}

TEST(Reset, reads_rfc3339_stamps) {
  EXPECT_EQ(parse_reset("2025-11-15T09:31:00Z", kToday), 1min);
  EXPECT_EQ(parse_reset(" 2025-11-15t09:31:00z ", kToday), 1min);
  EXPECT_EQ(parse_reset("2025-11-15 09:31:00Z", kToday), 1min);
  EXPECT_EQ(parse_reset("2025-11-15T10:31:00+01:00", kToday), 1min);
  EXPECT_EQ(parse_reset("2025-11-15T04:01:00-05:30", kToday), 1min);
  EXPECT_EQ(parse_reset("2025-11-15T09:30:00.5Z", kToday), 500ms);
  EXPECT_EQ(parse_reset("2025-11-15T09:30:00.000000001Z", kToday), 1ms) << "rounded up";
  EXPECT_EQ(parse_reset("2024-02-29T00:00:00Z", kToday), Duration()) << "past";
}

TEST(Reset, reads_durations) {
  EXPECT_EQ(parse_reset("6m0s", kToday), 6min);
  EXPECT_EQ(parse_reset("1s", kToday), 1s);
  EXPECT_EQ(parse_reset("20ms", kToday), 20ms);
  EXPECT_EQ(parse_reset("1h2m3.5s", kToday), 1h + 2min + 3500ms);
  EXPECT_EQ(parse_reset("38s", kToday), 38s);
  EXPECT_EQ(parse_duration("3\xc2\xb5s"), 3us);
  EXPECT_EQ(parse_duration("3\xce\xbcs"), 3us);
  EXPECT_EQ(parse_duration("250us1ns"), 250us + 1ns);
  EXPECT_EQ(parse_duration("1d12h"), 36h);
  EXPECT_EQ(parse_duration("1.5h"), 90min);
  EXPECT_EQ(parse_duration("0.00000000001m"), 6ns) << "0.6 ns, rounded up to what can be counted";
  EXPECT_EQ(parse_duration("0"), Duration());
  EXPECT_EQ(parse_duration("-5s"), Duration()) << "over already";
  EXPECT_EQ(parse_duration("+5s"), 5s);
  EXPECT_EQ(parse_duration("99999999999999999999h"), kServerDelayMax);
  for (const char* text : {"", "-", "5", "s", "5x", "5s5", "1s ms", ".s", "5 s", "1ss"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(Reset, reads_seconds_unix_times_and_http_dates) {
  EXPECT_EQ(parse_reset("60", kToday), 60s);
  EXPECT_EQ(parse_reset("0.5", kToday), 500ms);
  const auto unix_now = std::chrono::duration_cast<std::chrono::seconds>(kToday.time_since_epoch()).count();
  EXPECT_EQ(parse_reset(std::to_string(unix_now + 90), kToday), 90s);
  EXPECT_EQ(parse_reset(std::to_string(unix_now + 89) + ".25", kToday), 90s) << "rounded up";
  EXPECT_EQ(parse_reset(std::to_string((unix_now + 90) * 1000), kToday), 90s);
  EXPECT_EQ(parse_reset(std::to_string(unix_now - 90), kToday), 0s);
  EXPECT_EQ(parse_reset("Sat, 15 Nov 2025 09:30:20 GMT", kToday), 20s);
}

TEST(Reset, unreadable_text_gives_nothing) {
  for (const char* text :
       {"", "soon", "2025-11-15", "2025-11-15T09:31:00", "2025-11-15T09:31Z", "2025-11-15T09:31:00+0100",
        "2025-11-15T09:31:00+24:00", "2025-13-15T09:31:00Z", "2025-02-29T09:31:00Z", "2025-11-15T09:31:00.Z",
        "2025-11-15T25:31:00Z", "2025-11-15T09:31:00ZZ", "-60", "1e9"}) {
    EXPECT_EQ(parse_reset(text, kToday), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace stint
