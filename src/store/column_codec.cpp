#include "store/column_codec.hpp"

#include "store/errors.hpp"

#include <algorithm>
#include <charconv>

namespace stint::store {
namespace {

using domain::Hold;
using domain::OnCrash;
using domain::RunState;
using domain::Stop;

Error strange(std::string_view what, const std::string& value) {
  return {Errc::failed, "the database contains the unknown " + std::string(what) + " '" + value +
                            "': a newer Stint wrote it. Upgrade this Stint"};
}

}  // namespace

std::string_view hold_text(Hold hold) noexcept { return hold == Hold::none ? std::string_view() : to_string(hold); }
std::string_view stop_text(Stop stop) noexcept { return stop == Stop::none ? std::string_view() : to_string(stop); }

Stop read_stop(const std::string& name) noexcept {
  return name.empty() ? Stop::none : name == to_string(Stop::expired) ? Stop::expired : Stop::cancelled;
}

OnCrash read_on_crash(const std::string& name) noexcept {
  return name == to_string(OnCrash::rerun)    ? OnCrash::rerun
         : name == to_string(OnCrash::resume) ? OnCrash::resume
                                              : OnCrash::doubt;
}

Result<Hold> read_hold(const std::string& name) {
  if (name.empty()) return Hold::none;
  const auto hold = domain::parse_hold(name);
  if (!hold) return fail(strange("hold", name));
  return *hold;
}

Result<RunState> read_state(const std::string& name) {
  const auto state = domain::parse_run_state(name);
  if (!state) return fail(strange("state", name));
  return *state;
}

std::int64_t to_ms(Duration duration) noexcept {
  return std::chrono::ceil<std::chrono::milliseconds>(duration).count();
}
std::optional<std::int64_t> maybe_ms(std::optional<Duration> duration) noexcept {
  return duration ? std::optional(to_ms(*duration)) : std::nullopt;
}
std::optional<std::int64_t> maybe_unix_ms(std::optional<WallTime> time) noexcept {
  return time ? std::optional(domain::to_unix_ms(*time)) : std::nullopt;
}
std::optional<Duration> to_duration(std::optional<std::int64_t> ms) noexcept {
  return ms ? std::optional(Duration(std::chrono::milliseconds(*ms))) : std::nullopt;
}
std::optional<std::uint32_t> small(std::optional<std::int64_t> value) noexcept {
  return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
}
std::optional<std::int64_t> wide(std::optional<std::uint32_t> value) noexcept {
  return value ? std::optional(std::int64_t{*value}) : std::nullopt;
}

std::optional<AwakeTime> awake_time(std::optional<std::int64_t> ms) noexcept {
  return ms ? std::optional(AwakeTime(std::chrono::milliseconds(*ms))) : std::nullopt;
}
std::int64_t number_of(AwakeTime time) noexcept { return time.time_since_epoch().count(); }
std::optional<std::int64_t> number_of(std::optional<AwakeTime> time) noexcept {
  return time ? std::optional(number_of(*time)) : std::nullopt;
}

std::string day_of(WallTime time) {
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(time));
  const auto digits = [](std::int64_t number, std::size_t width) {
    const std::string text = std::to_string(number);
    return std::string(width - std::min(width, text.size()), '0') + text;
  };
  return digits(int{day.year()}, 4) + "-" + digits(unsigned{day.month()}, 2) + "-" + digits(unsigned{day.day()}, 2);
}

std::int64_t hour_of(WallTime time) { return std::chrono::floor<std::chrono::hours>(time).time_since_epoch().count(); }

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    hex += kDigits[static_cast<unsigned char>(byte) >> 4U];
    hex += kDigits[static_cast<unsigned char>(byte) & 0xFU];
  }
  return hex;
}

Result<std::int64_t> read_cursor(const std::string& text) {
  std::int64_t after = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), after);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!text.empty() && (!whole || after < 0)) return fail(no_such_cursor(text));
  return after;
}

}  // namespace stint::store
