/// Parses when a server asks to be retried, in every form seen in practice: seconds, fractions, milliseconds, HTTP
/// dates, RFC 3339 timestamps, durations like "6m0s".
///
/// Pure functions over untrusted text: no locale, clock, exception or allocation. Unreadable text gives nothing, never
/// a guess. A time in the past gives a wait of zero. Fractions round up, so that no retry is earlier than requested.
/// Waits longer than `kServerDelayMax` are clamped to it.
#pragma once

#include "stint/time.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stint {

/// A calendar time in milliseconds, so that every four-digit year fits.
using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

/// Small enough not to overflow when added to any steady-clock time, and longer than any useful wait.
inline constexpr Duration kServerDelayMax = std::chrono::hours(24 * 365 * 100);

/// A parsed delay header.
struct ServerDelay {
  enum class Kind : std::uint8_t {
    none,  ///< absent or unreadable
    wait,  ///< retry after `wait`
    stop,  ///< do not retry
  };
  Kind kind = Kind::none;
  Duration wait{};

  friend bool operator==(const ServerDelay&, const ServerDelay&) = default;
};

/// Retry-After: "3", "1.5" or an HTTP date. Negative numbers give none: RFC 9110 does not allow them.
[[nodiscard]] ServerDelay parse_retry_after(std::string_view value, WallTime now) noexcept;
/// retry-after-ms and similar headers: "1500", "0.5". Negative numbers give none.
[[nodiscard]] ServerDelay parse_retry_after_ms(std::string_view value) noexcept;
/// gRPC's push-back in milliseconds. Negative or unreadable values mean stop, as its specification says.
[[nodiscard]] ServerDelay parse_pushback_ms(std::string_view value) noexcept;

/// The reset of a rate limit, as time from now: an RFC 3339 timestamp, a duration like "6m0s", "20ms", "1.5s", an HTTP
/// date, seconds ("60"), or a Unix time in seconds or milliseconds (a number too large for a wait).
[[nodiscard]] std::optional<Duration> parse_reset(std::string_view value, WallTime now) noexcept;

/// "Sun, 06 Nov 1994 08:49:37 GMT" and the two obsolete forms of RFC 9110. For two-digit years `now` decides the
/// century: a date more than 50 years ahead is taken as past.
[[nodiscard]] std::optional<WallTime> parse_http_date(std::string_view value, WallTime now) noexcept;
/// "2025-08-21T17:05:00.5+02:00", "2025-08-21t15:05:00z". The offset is required.
[[nodiscard]] std::optional<WallTime> parse_rfc3339(std::string_view value) noexcept;
/// "1h2m3.5s", "250ms", "1.5h", "3µs", "1d2h"; a leading minus gives zero. A number without a unit gives nothing,
/// except "0".
[[nodiscard]] std::optional<Duration> parse_duration(std::string_view value) noexcept;

}  // namespace stint
