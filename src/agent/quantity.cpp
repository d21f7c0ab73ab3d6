#include "agent/quantity.hpp"

#include "agent/text.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>

namespace stint::agent {
namespace {

using namespace std::chrono_literals;

struct Unit {
  std::string_view name;
  std::chrono::nanoseconds length;
};
constexpr std::array kUnits{Unit{"d", 24h}, Unit{"h", 1h}, Unit{"m", 1min}, Unit{"s", 1s}, Unit{"ms", 1ms}};

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// Consumes the leading digits of the text; nothing if there are none or too many.
std::optional<std::int64_t> take_digits(std::string_view& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || !is_digit(text[0]) || error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// Consumes a decimal number and multiplies it by `scale`, exactly. Nothing: not a number, too large, or finer than 1.
std::optional<std::int64_t> take_scaled(std::string_view& text, std::int64_t scale, std::int64_t most) {
  const std::optional<std::int64_t> whole = take_digits(text);
  if (!whole || *whole > most / scale) return std::nullopt;
  std::int64_t value = *whole * scale;
  if (text.empty() || text[0] != '.') return value;
  text.remove_prefix(1);
  std::int64_t place = scale;
  int digits = 0;
  for (; !text.empty() && is_digit(text[0]); text.remove_prefix(1), ++digits) {
    if (text[0] != '0' && (place < 10 || place % 10 != 0)) return std::nullopt;
    place /= 10;
    value += (text[0] - '0') * place;
  }
  if (digits == 0 || value > most) return std::nullopt;
  return value;
}

std::unexpected<Error> refuse(std::string_view text, std::string_view expected) {
  return fail(Errc::invalid, fmt::format("expected {}, found '{}'", expected, excerpt(text)));
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  constexpr std::string_view kExpected = "a duration such as 500ms, 20s, 15m or 1h30m (at most 366d)";
  constexpr std::int64_t kMost = std::chrono::nanoseconds(kDurationMax).count();
  std::string_view rest = text;
  std::int64_t total = 0;
  std::size_t next_unit = 0;  // units only get smaller
  if (rest.empty()) return refuse(text, kExpected);
  if (rest == "0") return Duration::zero();
  while (!rest.empty()) {
    const std::size_t number_end = rest.find_first_not_of("0123456789.");
    if (number_end == std::string_view::npos) return refuse(text, kExpected);
    std::string_view number = rest.substr(0, number_end);
    rest.remove_prefix(number_end);
    const std::string_view name = rest.substr(0, rest.find_first_of("0123456789"));
    rest.remove_prefix(name.size());
    while (next_unit < kUnits.size() && kUnits[next_unit].name != name) ++next_unit;
    if (next_unit == kUnits.size()) return refuse(text, kExpected);
    const auto part = take_scaled(number, std::chrono::nanoseconds(kUnits[next_unit].length).count(), kMost);
    if (!part || !number.empty() || *part > kMost - total) return refuse(text, kExpected);
    total += *part;
    ++next_unit;
  }
  return std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(total));
}

Result<std::int64_t> parse_count(std::string_view text) {
  constexpr std::string_view kExpected = "a whole number such as 3, 400k or 2M";
  std::string digits;
  for (const char c : text) {
    if (c != '_') digits += c;
  }
  if (text.starts_with('_') || text.ends_with('_')) return refuse(text, kExpected);
  std::string_view rest = digits;
  std::int64_t scale = 1;
  if (!rest.empty()) {
    switch (rest.back()) {
      case 'k':
      case 'K': scale = 1'000; break;
      case 'm':
      case 'M': scale = 1'000'000; break;
      case 'g':
      case 'G': scale = 1'000'000'000; break;
      default: break;
    }
    if (scale > 1) rest.remove_suffix(1);
  }
  const std::optional<std::int64_t> value = take_scaled(rest, scale, kCountMax);
  if (!value || !rest.empty()) return refuse(text, kExpected);
  return *value;
}

Result<std::int64_t> parse_bytes(std::string_view text) {
  constexpr std::string_view kExpected = "an amount of memory such as 512M or 4G";
  std::string_view rest = text;
  const std::optional<std::int64_t> number = take_digits(rest);
  if (!number || *number == 0 || rest.empty()) return refuse(text, kExpected);
  const std::int64_t scale = rest[0] == 'M' ? std::int64_t{1} << 20 : rest[0] == 'G' ? std::int64_t{1} << 30 : 0;
  rest.remove_prefix(1);
  if (scale == 0 || (!rest.empty() && rest != "iB" && rest != "B") || *number > kCountMax / scale) {
    return refuse(text, kExpected);
  }
  return *number * scale;
}

Result<std::int64_t> parse_cost(std::string_view text) {
  constexpr std::int64_t kMicros = 1'000'000;
  std::string_view rest = text;
  if (rest.starts_with('$')) rest.remove_prefix(1);
  const std::optional<std::int64_t> value = take_scaled(rest, kMicros, kCountMax);
  if (!value || !rest.empty()) return refuse(text, "a cost such as 2.50");
  return *value;
}

Result<std::int64_t> parse_integer(std::string_view text, std::int64_t least, std::int64_t most) {
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  const bool all_digits = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
  if (!all_digits) return refuse(text, "a whole number");
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc()) value = INT64_MAX;  // too large for the type: out of every range
  if (negative) value = -value;
  if (value < least) return fail(Errc::invalid, fmt::format("must be at least {}, found {}", least, excerpt(text)));
  if (value > most) return fail(Errc::invalid, fmt::format("must be at most {}, found {}", most, excerpt(text)));
  return value;
}

std::string format_duration(Duration duration) {
  auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(duration);
  std::string out;
  for (const Unit& unit : kUnits) {
    const auto length = std::chrono::duration_cast<std::chrono::milliseconds>(unit.length);
    const auto count = rest / length;
    rest -= count * length;
    if (count > 0) out += fmt::format("{}{}", count, unit.name);
  }
  return out.empty() ? "0s" : out;
}

std::string format_cost(std::int64_t micros) {
  std::string out = fmt::format("{}.{:06}", micros / 1'000'000, micros % 1'000'000);
  while (out.ends_with('0') && out[out.size() - 3] != '.') out.pop_back();
  return out;
}

}  // namespace stint::agent
