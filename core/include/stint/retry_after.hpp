/// Reads what the other side says about when to come back, in every form seen in the wild: seconds, fractions,
/// milliseconds, HTTP dates, RFC 3339 stamps, durations like "6m0s".
///
/// Pure functions over untrusted text: no locale, no clock, no exception, no allocation. What can't be read is nothing,
/// never a guess. A moment in the past is a wait of zero. Fractions round up: nobody comes back earlier than asked.
/// What is longer than `kServerDelayMax` is cut to it.
#pragma once

#include "stint/time.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stint {

/// A moment of the calendar; milliseconds, so that every year of four digits fits.
using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

/// Added to any moment of the steady clock it does not overflow, and nobody waits that long.
inline constexpr Duration kServerDelayMax = std::chrono::hours(24 * 365 * 100);

/// What a header asks for.
struct ServerDelay {
  enum class Kind : std::uint8_t {
    none,  ///< it says nothing that can be understood
    wait,  ///< not before `wait` has passed
    stop,  ///< do not come back at all
  };
  Kind kind = Kind::none;
  Duration wait{};

  friend bool operator==(const ServerDelay&, const ServerDelay&) = default;
};

/// Retry-After: "3", "1.5" or an HTTP date. Negative numbers are none: RFC 9110 does not know them.
[[nodiscard]] ServerDelay parse_retry_after(std::string_view value, WallTime now) noexcept;
/// retry-after-ms and its relatives: "1500", "0.5". Negative numbers are none.
[[nodiscard]] ServerDelay parse_retry_after_ms(std::string_view value) noexcept;
/// gRPC's push-back in milliseconds. Negative or unreadable means stop: so its specification says.
[[nodiscard]] ServerDelay parse_pushback_ms(std::string_view value) noexcept;

/// The reset of a rate limit, as time from now: an RFC 3339 stamp, a duration like "6m0s", "20ms", "1.5s", an HTTP
/// date, seconds ("60"), or a Unix time in seconds or milliseconds (a number too large for a wait).
[[nodiscard]] std::optional<Duration> parse_reset(std::string_view value, WallTime now) noexcept;

/// "Sun, 06 Nov 1994 08:49:37 GMT" and the two obsolete forms of RFC 9110. Of a year with two digits, `now` decides the
/// century: a date that seems more than 50 years ahead is in the past.
[[nodiscard]] std::optional<WallTime> parse_http_date(std::string_view value, WallTime now) noexcept;
/// "2025-08-21T17:05:00.5+02:00", "2025-08-21t15:05:00z". The offset is required.
[[nodiscard]] std::optional<WallTime> parse_rfc3339(std::string_view value) noexcept;
/// "1h2m3.5s", "250ms", "1.5h", "3µs", "1d2h"; a leading minus makes it zero. A number without a unit is nothing, but
/// for "0".
[[nodiscard]] std::optional<Duration> parse_duration(std::string_view value) noexcept;

}  // namespace stint
