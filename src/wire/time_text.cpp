#include "wire/time_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace stint::wire {
namespace {

using namespace std::chrono;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Consumes a text piece by piece.
class Pieces {
 public:
  explicit Pieces(std::string_view text) : rest_(text) {}

  int number(std::size_t digits) {
    int value = 0;
    if (rest_.size() < digits || !std::ranges::all_of(rest_.substr(0, digits), is_digit)) {
      failed_ = true;
      return 0;
    }
    std::from_chars(rest_.data(), rest_.data() + digits, value);
    rest_.remove_prefix(digits);
    return value;
  }
  char one_of(std::string_view characters) {
    if (rest_.empty() || characters.find(rest_.front()) == std::string_view::npos) {
      failed_ = true;
      return '\0';
    }
    const char found = rest_.front();
    rest_.remove_prefix(1);
    return found;
  }
  /// ".25" is 250.
  int thousandths() {
    if (!rest_.starts_with('.')) return 0;
    rest_.remove_prefix(1);
    int value = 0;
    std::size_t digits = 0;
    for (; !rest_.empty() && is_digit(rest_.front()); rest_.remove_prefix(1), ++digits) {
      if (digits < 3) value = value * 10 + (rest_.front() - '0');
    }
    failed_ = failed_ || digits == 0;
    for (; digits < 3; ++digits) value *= 10;
    return value;
  }
  [[nodiscard]] bool well_and_over() const { return !failed_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace

std::string time_text(WallTime at) {
  const auto day = floor<days>(at);
  const year_month_day date(day);
  const hh_mm_ss time(at - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), time.hours().count(),
                     time.minutes().count(), time.seconds().count(), time.subseconds().count());
}

std::optional<WallTime> parse_time(std::string_view text) {
  Pieces pieces(text);
  const year y(pieces.number(4));
  pieces.one_of("-");
  const month m(static_cast<unsigned>(pieces.number(2)));
  pieces.one_of("-");
  const day d(static_cast<unsigned>(pieces.number(2)));
  pieces.one_of("Tt ");
  const int hour = pieces.number(2);
  pieces.one_of(":");
  const int minute = pieces.number(2);
  pieces.one_of(":");
  const int second = pieces.number(2);
  const int thousandths = pieces.thousandths();
  minutes offset{};
  const char sign = pieces.one_of("Zz+-");
  if (sign == '+' || sign == '-') {
    const int by_hours = pieces.number(2);
    pieces.one_of(":");
    const int by_minutes = pieces.number(2);
    if (by_hours > 23 || by_minutes > 59) return std::nullopt;
    offset = (sign == '+' ? 1 : -1) * minutes(by_hours * 60 + by_minutes);
  }
  const year_month_day date(y, m, d);
  if (!pieces.well_and_over() || !date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  return sys_days(date) + hours(hour) + minutes(minute) + std::chrono::seconds(second) + milliseconds(thousandths) -
         offset;
}

}  // namespace stint::wire
