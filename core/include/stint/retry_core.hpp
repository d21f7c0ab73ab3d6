/// The retry rule as a pure function: time and random number are arguments, the decision is data.
///
/// Wait = max(the server's requested delay, full jitter of min(cap, base·2ⁱ)), i from 1, and never past the deadline.
/// Only operations that are safe to repeat are repeated. Giving up returns the last real error, prefixed with the
/// reason. `stint/retry.hpp` applies the rule inside a coroutine; a scheduler can apply it between durable attempts.
#pragma once

#include "stint/budget.hpp"
#include "stint/deadline.hpp"
#include "stint/error.hpp"

#include <cstdint>
#include <expected>
#include <string_view>

namespace stint {

/// The waits between tries: full jitter of a ceiling that doubles from `base` to `cap`.
struct BackoffRange {
  Duration base = std::chrono::milliseconds(500);
  Duration cap = std::chrono::seconds(8);

  friend bool operator==(const BackoffRange&, const BackoffRange&) = default;
};

struct RetryPolicy {
  Duration base = std::chrono::milliseconds(500);
  Duration cap = std::chrono::seconds(8);       ///< bounds the jitter, not the server's requested delay
  std::uint32_t attempts_max = 3;               ///< including the first, which is always made
  Duration attempt_time_max = Duration::max();  ///< longer attempts are stopped: `timed_out`, outcome unknown
  bool idempotent = false;                      ///< the work may be executed twice: also repeat after `Retry::unknown`
  bool counts_attempts = true;                  ///< each attempt is charged to the budget

  [[nodiscard]] BackoffRange backoff() const noexcept { return {.base = base, .cap = cap}; }
};

enum class GiveUp : std::uint8_t {
  not_repeatable,  ///< repeating can't help, or is unsafe
  no_attempts,     ///< the attempts of the policy or the budget are used up
  no_time,         ///< the next attempt would start after the deadline
  no_token,        ///< too many retries towards this upstream; see `RetryTokens`
  no_permit,       ///< permits returned for the wait could not be acquired again
};
[[nodiscard]] std::string_view to_string(GiveUp reason) noexcept;

/// The time of the next attempt, or the reason to give up.
using RetryDecision = std::expected<TimePoint, GiveUp>;

struct FailedAttempt {
  std::uint32_t number = 1;  ///< of the failed attempt, from 1
  TimePoint now{};
  Deadline deadline{};
  std::int64_t attempts_left = Allowance::kUnlimited;  ///< in the budget
  std::uint64_t random = 0;                            ///< uniform over the whole type
};

[[nodiscard]] RetryDecision decide_retry(const RetryPolicy& policy, const Error& error, const FailedAttempt& attempt);

/// True for `Retry::safe`, and for `Retry::unknown` if idempotent. Cancellation is never repeated, whatever its mark.
[[nodiscard]] bool may_repeat(const Error& error, bool idempotent) noexcept;
/// min(cap, base·2ⁱ), for any i.
[[nodiscard]] Duration backoff_max(const BackoffRange& range, std::uint32_t i) noexcept;
/// Uniform in [0, longest].
[[nodiscard]] Duration full_jitter(Duration longest, std::uint64_t random) noexcept;
/// The wait after the i-th failure in a row, from 1. The one rule: every back-off is this function of some range.
[[nodiscard]] Duration backoff(const BackoffRange& range, std::uint32_t i, std::uint64_t random) noexcept;

/// The last real error with its code, retry mark and delay, prefixed with the reason for giving up. `not_repeatable`
/// returns the error unchanged: no retry was possible.
[[nodiscard]] Error gave_up(Error last, GiveUp reason, const FailedAttempt& attempt);

}  // namespace stint
