/// The rate limits that a provider reports with each answer, in one form: for rate buckets in front of the provider.
/// Pure. What is missing or unreadable is none; a provider that reports nothing has none at all.
#pragma once

#include "model/dialect.hpp"
#include "stint/retry_after.hpp"
#include "stint/time.hpp"

#include <cstdint>
#include <optional>

namespace stint::model {

struct RateCounter {
  std::optional<std::int64_t> limit, remaining;
  std::optional<Duration> reset;  ///< from now

  [[nodiscard]] bool known() const noexcept { return limit || remaining || reset; }
  friend bool operator==(const RateCounter&, const RateCounter&) = default;
};

struct RateLimits {
  RateCounter requests, tokens, input_tokens, output_tokens;
  friend bool operator==(const RateLimits&, const RateLimits&) = default;
};

/// Limits of zero or less are placeholders of some servers: that counter is unknown.
[[nodiscard]] RateLimits read_rate_limits(Dialect dialect, const Headers& headers, WallTime now);

}  // namespace stint::model
