// Arbitrary bytes, and every time of four-digit years in every form, against the calendar of the standard library.
#include "stint/retry_after.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstdio>
#include <string>

namespace stint {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

constexpr std::array kDayNames = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
constexpr std::array kMonthNames = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

struct Parts {
  explicit Parts(sys_seconds when)
      : date(std::chrono::floor<std::chrono::days>(when)),
        time(when - std::chrono::floor<std::chrono::days>(when)),
        day_name(kDayNames[std::chrono::weekday(std::chrono::floor<std::chrono::days>(when)).c_encoding()]),
        month_name(kMonthNames[static_cast<unsigned>(date.month()) - 1]) {}
  int year() const { return static_cast<int>(date.year()); }
  unsigned day() const { return static_cast<unsigned>(date.day()); }
  std::string clock() const {
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "%02d:%02d:%02d", static_cast<int>(time.hours().count()),
                  static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()));
    return text.data();
  }
  std::chrono::year_month_day date;
  std::chrono::hh_mm_ss<std::chrono::seconds> time;
  std::string day_name;
  std::string month_name;
};

template <class... Args>
std::string print(const char* format, Args... args) {
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), format, args...);
  return text.data();
}

sys_seconds any_second(int first_year, int last_year) {
  const auto first = sys_seconds(sys_days(std::chrono::year(first_year) / 1 / 1)).time_since_epoch().count();
  const auto last = sys_seconds(sys_days(std::chrono::year(last_year) / 12 / 31)).time_since_epoch().count();
  return sys_seconds(std::chrono::seconds(*rc::gen::inRange<std::int64_t>(first, last)));
}

RC_GTEST_PROP(RetryAfterProperty, every_date_is_read_in_every_form, ()) {
  const sys_seconds when = any_second(0, 9998);
  const Parts parts(when);
  const WallTime now = sys_days(2025y / 11 / 15);
  const std::string clock = parts.clock();
  const std::string short_day = parts.day_name.substr(0, 3);
  RC_ASSERT(parse_http_date(print("%s, %02u %s %04d %s GMT", short_day.c_str(), parts.day(), parts.month_name.c_str(),
                                  parts.year(), clock.c_str()),
                            now) == WallTime(when));
  RC_ASSERT(parse_http_date(print("%s %s %2u %s %04d", short_day.c_str(), parts.month_name.c_str(), parts.day(),
                                  clock.c_str(), parts.year()),
                            now) == WallTime(when));
  RC_ASSERT(parse_rfc3339(print("%04d-%02u-%02uT%sZ", parts.year(), static_cast<unsigned>(parts.date.month()),
                                parts.day(), clock.c_str())) == WallTime(when));
}

RC_GTEST_PROP(RetryAfterProperty, two_digits_of_a_year_are_read_around_now, ()) {
  const sys_seconds now = any_second(1900, 2999);
  const int this_year =
      static_cast<int>(std::chrono::year_month_day(std::chrono::floor<std::chrono::days>(now)).year());
  const int century_end = this_year - this_year % 100 + 99;
  const sys_seconds when =
      any_second(std::max(this_year - 49, century_end - 99), std::min(this_year + 49, century_end));
  const Parts parts(when);
  const std::string text = print("%s, %02u-%s-%02d %s GMT", parts.day_name.c_str(), parts.day(),
                                 parts.month_name.c_str(), parts.year() % 100, parts.clock().c_str());
  RC_ASSERT(parse_http_date(text, now) == WallTime(when));
}

RC_GTEST_PROP(RetryAfterProperty, numbers_are_never_rounded_down, ()) {
  const auto whole = *rc::gen::inRange<std::int64_t>(0, 3'000'000'000);
  const auto nanos = *rc::gen::inRange<std::int64_t>(0, 1'000'000'000);
  const std::string text = print("%lld.%09lld", static_cast<long long>(whole), static_cast<long long>(nanos));
  const Duration exact = std::chrono::seconds(whole) + std::chrono::nanoseconds(nanos);
  const ServerDelay plain = parse_retry_after(text, WallTime());
  RC_ASSERT(plain.wait == exact);
  const std::string longer = text + std::to_string(*rc::gen::inRange(1, 1000));
  RC_ASSERT(parse_retry_after(longer, WallTime()).wait == exact + 1ns);
  RC_ASSERT(parse_duration(text + "s") == exact);
}

RC_GTEST_PROP(RetryAfterProperty, arbitrary_bytes_are_handled, ()) {
  const auto letters =
      rc::gen::oneOf(rc::gen::arbitrary<char>(), rc::gen::elementOf(std::string("0123456789.-+:, TZGMTsmhdNovSat")));
  const std::string text = *rc::gen::container<std::string>(letters);
  const WallTime now{std::chrono::milliseconds(*rc::gen::arbitrary<std::int64_t>())};
  for (const ServerDelay& delay : {parse_retry_after(text, now), parse_retry_after_ms(text), parse_pushback_ms(text)}) {
    RC_ASSERT(delay.wait >= Duration::zero());
    RC_ASSERT(delay.wait <= kServerDelayMax);
  }
  const auto reset = parse_reset(text, now);
  RC_ASSERT(!reset || (*reset >= Duration::zero() && *reset <= kServerDelayMax));
}

}  // namespace
}  // namespace stint
