/// Quantities as people write them: `1h30m`, `500ms`, `400k`, `2.50`. Exact: no floating point in between, and what
/// does not fit is refused, never rounded or wrapped.
#pragma once

#include "stint/error.hpp"
#include "stint/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace stint::agent {

/// A year: longer than any run. A larger value is a mistake in the unit.
inline constexpr Duration kDurationMax = std::chrono::hours(24 * 366);
/// A count above it is a mistake; `Budget::kAmountMax` is larger.
inline constexpr std::int64_t kCountMax = std::int64_t{1} << 47;

/// `20m`, `500ms`, `1h30m`, `2d`, `1.5h`: a number and ms, s, m, h or d, larger units first, each once. Not negative.
[[nodiscard]] Result<Duration> parse_duration(std::string_view text);
/// `3`, `400k`, `2M`, `1.5M`, `1_000`, `1G`: a whole number, k = 1000. Not negative.
[[nodiscard]] Result<std::int64_t> parse_count(std::string_view text);
/// `512M`, `4G`, `4GiB`: bytes; M is 1024 · 1024, at least 1M.
[[nodiscard]] Result<std::int64_t> parse_bytes(std::string_view text);
/// `2.50`, `$2`, `0.000001`: millionths of the currency's unit. Not negative.
[[nodiscard]] Result<std::int64_t> parse_cost(std::string_view text);
/// A whole number without sign, unit or fraction, between the bounds; the error names the bound that it broke.
[[nodiscard]] Result<std::int64_t> parse_integer(std::string_view text, std::int64_t least, std::int64_t most);

/// The shortest way to write it: `1h30m`.
[[nodiscard]] std::string format_duration(Duration duration);
[[nodiscard]] std::string format_cost(std::int64_t micros);

}  // namespace stint::agent
