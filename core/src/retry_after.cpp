#include "stint/retry_after.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace stint {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using std::chrono::sys_days;

constexpr std::int64_t kDelayMax = nanoseconds(kServerDelayMax).count();
// From here on a number is a Unix time, not a wait: in seconds (the year 2001; a wait of 31 years), or in milliseconds.
constexpr std::int64_t kUnixSecondsMin = 1'000'000'000;
constexpr std::int64_t kUnixMillisecondsMin = kUnixSecondsMin * 1000;

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view trim(std::string_view text) noexcept {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

ServerDelay wait_for(Duration wait) noexcept { return {.kind = ServerDelay::Kind::wait, .wait = wait}; }

// Supported range: four-digit years.
constexpr WallTime kEarliestDate = sys_days(std::chrono::year(0) / 1 / 1);
constexpr WallTime kLatestDate = sys_days(std::chrono::year(9999) / 12 / 31);

Duration until(WallTime when, WallTime now) noexcept {
  // Compared in milliseconds: a difference of distant times may not fit into nanoseconds.
  constexpr milliseconds kLongest = std::chrono::duration_cast<milliseconds>(kServerDelayMax);
  return std::clamp(when - std::clamp(now, kEarliestDate, kLatestDate), milliseconds::zero(), kLongest);
}

/// Reads a text from the left. A failing `take` leaves the text unchanged.
class Reader {
 public:
  explicit Reader(std::string_view text) noexcept : text_(text) {}

  bool done() const noexcept { return text_.empty(); }
  bool take(char wanted) noexcept {
    if (text_.empty() || lower(text_.front()) != lower(wanted)) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool take(std::string_view wanted) noexcept {
    if (text_.size() < wanted.size()) return false;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (lower(text_[i]) != lower(wanted[i])) return false;
    }
    text_.remove_prefix(wanted.size());
    return true;
  }
  /// Exactly `count` digits.
  std::optional<int> digits(std::size_t count) noexcept {
    if (text_.size() < count ||
        !std::all_of(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(count), is_digit)) {
      return std::nullopt;
    }
    int value = 0;
    for (std::size_t i = 0; i < count; ++i) value = value * 10 + (text_[i] - '0');
    text_.remove_prefix(count);
    return value;
  }
  /// "12", "1.5", ".5", "2." times `unit`, rounded up and clamped to the longest delay.
  std::optional<nanoseconds> number(nanoseconds unit) noexcept {
    const bool whole_part = !text_.empty() && is_digit(text_.front());
    const bool fraction_part = text_.size() > 1 && text_.front() == '.' && is_digit(text_[1]);
    if (!whole_part && !fraction_part) return std::nullopt;
    const std::int64_t whole = whole_number();
    std::int64_t sum = 0;
    if (__builtin_mul_overflow(whole, unit.count(), &sum)) sum = kDelayMax;
    sum = std::min(sum, kDelayMax);
    if (take('.')) sum = std::min(sum + fraction(unit.count()), kDelayMax);
    return nanoseconds(sum);
  }
  /// Digits up to the first other character; saturates far above every bound used here.
  std::int64_t whole_number() noexcept {
    constexpr std::int64_t kEnough = std::int64_t{1} << 58;
    std::int64_t value = 0;
    for (; !text_.empty() && is_digit(text_.front()); text_.remove_prefix(1)) {
      if (value < kEnough) value = value * 10 + (text_.front() - '0');
    }
    return value;
  }
  /// The digits after a point as a fraction of `unit`, rounded up.
  std::int64_t fraction(std::int64_t unit) noexcept {
    std::int64_t share = 0, round_up = 0;
    for (; !text_.empty() && is_digit(text_.front()); text_.remove_prefix(1)) {
      const std::int64_t digit = text_.front() - '0';
      if (unit % 10 == 0) {
        unit /= 10;
        share += digit * unit;
      } else if (digit != 0) {
        round_up = unit;  // below the resolution: all further digits together are less than one `unit`
      }
    }
    return share + round_up;
  }
  std::optional<std::size_t> any_of(const auto& words) noexcept {
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (take(words[i])) return i;
    }
    return std::nullopt;
  }

 private:
  std::string_view text_;
};

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
// Long names first: each short name is a prefix of its long one.
constexpr std::array<std::string_view, 14> kDays = {"Monday",   "Tuesday", "Wednesday", "Thursday", "Friday",
                                                    "Saturday", "Sunday",  "Mon",       "Tue",      "Wed",
                                                    "Thu",      "Fri",     "Sat",       "Sun"};

struct CalendarTime {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
};

std::optional<WallTime> to_wall_time(const CalendarTime& time) noexcept {
  const std::chrono::year_month_day date(std::chrono::year(time.year),
                                         std::chrono::month(static_cast<unsigned>(time.month)),
                                         std::chrono::day(static_cast<unsigned>(time.day)));
  if (!date.ok() || time.hour > 23 || time.minute > 59 || time.second > 60) return std::nullopt;  // 60: a leap second
  return sys_days(date) + std::chrono::hours(time.hour) + std::chrono::minutes(time.minute) + seconds(time.second);
}

bool take_time(Reader& reader, CalendarTime& time) noexcept {
  const auto hour = reader.digits(2);
  if (!hour || !reader.take(':')) return false;
  const auto minute = reader.digits(2);
  if (!minute || !reader.take(':')) return false;
  const auto second = reader.digits(2);
  if (!second) return false;
  time.hour = *hour, time.minute = *minute, time.second = *second;
  return true;
}

bool take_number(Reader& reader, std::size_t count, int& value) noexcept {
  const auto number = reader.digits(count);
  if (number) value = *number;
  return number.has_value();
}

bool take_month(Reader& reader, CalendarTime& time) noexcept {
  const auto month = reader.any_of(kMonths);
  if (month) time.month = static_cast<int>(*month) + 1;
  return month.has_value();
}

/// ", 06 Nov 1994 08:49:37 GMT", after the day's name.
std::optional<CalendarTime> imf_fixdate(Reader reader) noexcept {
  CalendarTime time;
  const bool ok = reader.take(", ") && take_number(reader, 2, time.day) && reader.take(' ') &&
                  take_month(reader, time) && reader.take(' ') && take_number(reader, 4, time.year) &&
                  reader.take(' ') && take_time(reader, time) && reader.take(" GMT") && reader.done();
  return ok ? std::optional(time) : std::nullopt;
}

/// ", 06-Nov-94 08:49:37 GMT": the year has two digits.
std::optional<CalendarTime> rfc850_date(Reader reader) noexcept {
  CalendarTime time;
  const bool ok = reader.take(", ") && take_number(reader, 2, time.day) && reader.take('-') &&
                  take_month(reader, time) && reader.take('-') && take_number(reader, 2, time.year) &&
                  reader.take(' ') && take_time(reader, time) && reader.take(" GMT") && reader.done();
  return ok ? std::optional(time) : std::nullopt;
}

/// " Nov  6 08:49:37 1994", as C's asctime writes it.
std::optional<CalendarTime> asctime_date(Reader reader) noexcept {
  CalendarTime time;
  if (!reader.take(' ') || !take_month(reader, time) || !reader.take(' ')) return std::nullopt;
  const bool ok = (reader.take(' ') ? take_number(reader, 1, time.day) : take_number(reader, 2, time.day)) &&
                  reader.take(' ') && take_time(reader, time) && reader.take(' ') &&
                  take_number(reader, 4, time.year) && reader.done();
  return ok ? std::optional(time) : std::nullopt;
}

void set_century(CalendarTime& time, WallTime now) noexcept {
  const int this_year =
      static_cast<int>(std::chrono::year_month_day(std::chrono::floor<std::chrono::days>(now)).year());
  time.year += this_year - this_year % 100;
  if (time.year > this_year + 50) time.year -= 100;
}

struct Unit {
  std::string_view name;
  nanoseconds length;
};
// Longer names before their prefixes.
constexpr std::array<Unit, 9> kUnits = {{{"ns", nanoseconds(1)},
                                         {"us", std::chrono::microseconds(1)},
                                         {"\xc2\xb5s", std::chrono::microseconds(1)},
                                         {"\xce\xbcs", std::chrono::microseconds(1)},
                                         {"ms", milliseconds(1)},
                                         {"s", seconds(1)},
                                         {"m", std::chrono::minutes(1)},
                                         {"h", std::chrono::hours(1)},
                                         {"d", std::chrono::hours(24)}}};

/// A number and its unit; the number is parsed again once its unit is known.
std::optional<nanoseconds> number_with_unit(Reader& reader) noexcept {
  Reader ahead = reader;
  if (!ahead.number(seconds(1))) return std::nullopt;
  for (const Unit& unit : kUnits) {
    if (!ahead.take(unit.name)) continue;
    const auto length = reader.number(unit.length);
    reader = ahead;
    return length;
  }
  return std::nullopt;
}

/// A number and nothing else.
std::optional<nanoseconds> plain_number(std::string_view text, nanoseconds unit) noexcept {
  Reader reader(text);
  const auto number = reader.number(unit);
  return reader.done() ? number : std::nullopt;
}

std::optional<Duration> unix_time(std::string_view text, WallTime now) noexcept {
  Reader reader(text);
  const std::int64_t number = reader.whole_number();
  if (number < kUnixSecondsMin || !plain_number(text, seconds(1))) return std::nullopt;
  if (number >= kUnixMillisecondsMin) return until(WallTime(milliseconds(number)), now);
  return until(WallTime(seconds(number + (reader.done() ? 0 : 1))), now);  // a fraction rounds up
}

}  // namespace

std::optional<WallTime> parse_http_date(std::string_view value, WallTime now) noexcept {
  Reader reader(trim(value));
  if (now < kEarliestDate || now > kLatestDate || !reader.any_of(kDays)) return std::nullopt;
  if (const auto time = imf_fixdate(reader)) return to_wall_time(*time);
  if (const auto time = asctime_date(reader)) return to_wall_time(*time);
  if (auto time = rfc850_date(reader)) {
    set_century(*time, now);
    return to_wall_time(*time);
  }
  return std::nullopt;
}

std::optional<WallTime> parse_rfc3339(std::string_view value) noexcept {
  Reader reader(trim(value));
  CalendarTime time;
  const bool date_ok = take_number(reader, 4, time.year) && reader.take('-') && take_number(reader, 2, time.month) &&
                       reader.take('-') && take_number(reader, 2, time.day);
  if (!date_ok || !(reader.take('T') || reader.take(' ')) || !take_time(reader, time)) return std::nullopt;
  milliseconds fraction{};
  if (reader.take('.')) {
    const auto digit = Reader(reader).digits(1);
    if (!digit) return std::nullopt;
    fraction = milliseconds(reader.fraction(1000));
  }
  std::chrono::minutes offset{};
  if (!reader.take('Z')) {
    const bool west = reader.take('-');
    if (!west && !reader.take('+')) return std::nullopt;
    int hours = 0, minutes = 0;
    if (!take_number(reader, 2, hours) || !reader.take(':') || !take_number(reader, 2, minutes)) return std::nullopt;
    if (hours > 23 || minutes > 59) return std::nullopt;
    offset = std::chrono::hours(hours) + std::chrono::minutes(minutes);
    if (west) offset = -offset;
  }
  const auto local = to_wall_time(time);
  if (!local || !reader.done()) return std::nullopt;
  return *local + fraction - offset;
}

std::optional<Duration> parse_duration(std::string_view value) noexcept {
  Reader reader(trim(value));
  const bool negative = reader.take('-');
  if (!negative) reader.take('+');
  if (Reader zero = reader; zero.take('0') && zero.done()) return Duration::zero();
  nanoseconds sum{};
  bool any = false;
  for (; !reader.done(); any = true) {
    const auto part = number_with_unit(reader);
    if (!part) return std::nullopt;
    sum = std::min(sum + *part, nanoseconds(kServerDelayMax));
  }
  if (!any) return std::nullopt;
  return negative ? Duration::zero() : Duration(sum);
}

ServerDelay parse_retry_after(std::string_view value, WallTime now) noexcept {
  if (const auto wait = plain_number(trim(value), seconds(1))) return wait_for(*wait);
  if (const auto when = parse_http_date(value, now)) return wait_for(until(*when, now));
  return {};
}

ServerDelay parse_retry_after_ms(std::string_view value) noexcept {
  if (const auto wait = plain_number(trim(value), milliseconds(1))) return wait_for(*wait);
  return {};
}

ServerDelay parse_pushback_ms(std::string_view value) noexcept {
  const ServerDelay delay = parse_retry_after_ms(value);
  return delay.kind == ServerDelay::Kind::wait ? delay : ServerDelay{.kind = ServerDelay::Kind::stop};
}

std::optional<Duration> parse_reset(std::string_view value, WallTime now) noexcept {
  const std::string_view text = trim(value);
  if (const auto wait = unix_time(text, now)) return wait;
  if (const auto wait = plain_number(text, seconds(1))) return *wait;
  if (const auto wait = parse_duration(text)) return wait;
  if (const auto when = parse_rfc3339(text)) return until(*when, now);
  if (const auto when = parse_http_date(text, now)) return until(*when, now);
  return std::nullopt;
}

}  // namespace stint
