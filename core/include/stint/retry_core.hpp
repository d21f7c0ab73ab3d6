/// The one retry rule, pure: the moment and the random number are arguments, the answer is data.
///
/// Wait = max(what the other side asked for, full jitter of min(cap, base·2ⁱ)), i from 1, and never past the deadline.
/// Only what is safe to repeat is repeated. Who gives up returns the last real error, with the reason in front of it.
/// `stint/retry.hpp` acts on it inside a coroutine; a scheduler can act on it between durable attempts.
#pragma once

#include "stint/budget.hpp"
#include "stint/deadline.hpp"
#include "stint/error.hpp"

#include <cstdint>
#include <expected>
#include <string_view>

namespace stint {

struct RetryPolicy {
  Duration base = std::chrono::milliseconds(500);
  Duration cap = std::chrono::seconds(8);       ///< bounds the jitter, never what the other side asked for
  std::uint32_t attempts_max = 3;               ///< with the first, which is always made
  Duration attempt_time_max = Duration::max();  ///< longer ones are stopped: `timed_out`, outcome unknown
  bool idempotent = false;                      ///< the work may take place twice: repeat it after `Retry::unknown` too
  bool counts_attempts = true;                  ///< each attempt is one of the budget's
};

enum class GiveUp : std::uint8_t {
  not_repeatable,  ///< repeating can't help, or must not happen
  no_attempts,     ///< the policy's or the budget's are used up
  no_time,         ///< the next attempt would begin after the deadline
  no_token,        ///< too many retries towards this upstream; see `RetryTokens`
  no_permit,       ///< what was given back for the wait could not be had again
};
[[nodiscard]] std::string_view to_string(GiveUp reason) noexcept;

/// The moment of the next attempt, or why there is none.
using RetryDecision = std::expected<TimePoint, GiveUp>;

struct FailedAttempt {
  std::uint32_t number = 1;  ///< of the attempt that failed, from 1
  TimePoint now{};
  Deadline deadline{};
  std::int64_t attempts_left = Allowance::kUnlimited;  ///< in the budget
  std::uint64_t random = 0;                            ///< uniform over the whole type
};

[[nodiscard]] RetryDecision decide_retry(const RetryPolicy& policy, const Error& error, const FailedAttempt& attempt);

/// `Retry::safe`, or `Retry::unknown` of what is idempotent. Cancelled is never repeated, whatever it says.
[[nodiscard]] bool may_repeat(const Error& error, bool idempotent) noexcept;
/// min(cap, base·2ⁱ), for any i.
[[nodiscard]] Duration backoff_max(const RetryPolicy& policy, std::uint32_t i) noexcept;
/// Uniform in [0, longest].
[[nodiscard]] Duration full_jitter(Duration longest, std::uint64_t random) noexcept;

/// The last real error with its code, retry mark and delay; what is said first is why nobody tries again. What was not
/// repeatable is returned as it is: nothing was given up.
[[nodiscard]] Error gave_up(Error last, GiveUp reason, const FailedAttempt& attempt);

}  // namespace stint
