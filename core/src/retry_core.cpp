#include "stint/retry_core.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace stint {

namespace {

std::string text(Duration duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  if (ms < 1000) return std::to_string(ms) + " ms";
  const std::string tenth = ms < 60'000 ? "." + std::to_string(ms / 100 % 10) : "";
  return std::to_string(ms / 1000) + tenth + " s";
}

std::string why(const Error& last, GiveUp reason, const FailedAttempt& attempt) {
  if (reason != GiveUp::no_time) return std::string(to_string(reason));
  const Duration left = attempt.deadline.remaining(attempt.now);
  if (left == Duration::zero()) return "the deadline has passed";
  std::string what = text(left) + " are left";
  if (last.retry_after()) what += ", and the server asked to wait " + text(*last.retry_after());
  return what;
}

}  // namespace

std::string_view to_string(GiveUp reason) noexcept {
  switch (reason) {
    case GiveUp::not_repeatable: return "it must not be repeated";
    case GiveUp::no_attempts: return "no attempt is left";
    case GiveUp::no_time: return "no time is left";
    case GiveUp::no_token: return "no retry token is left: too much of the traffic to this upstream is retries";
    case GiveUp::no_permit: return "the permit released during the back-off could not be acquired again";
  }
  return "unknown";
}

bool may_repeat(const Error& error, bool idempotent) noexcept {
  if (error.code() == Errc::cancelled) return false;
  return error.retry() == Retry::safe || (error.retry() == Retry::unknown && idempotent);
}

Duration backoff_max(const BackoffRange& range, std::uint32_t i) noexcept {
  const Duration cap = std::max(range.cap, Duration::zero());
  const Duration base = std::max(range.base, Duration::zero());
  constexpr std::uint32_t kShiftMax = 62;  // base·2⁶² of one nanosecond is 146 years
  // Compared by dividing the cap: multiplying the base would overflow.
  if (i > kShiftMax || base.count() > (cap.count() >> i)) return base == Duration::zero() ? base : cap;
  return Duration(base.count() << i);
}

Duration full_jitter(Duration longest, std::uint64_t random) noexcept {
  if (longest <= Duration::zero()) return Duration::zero();
  __extension__ using Wide = unsigned __int128;
  const auto choices = static_cast<std::uint64_t>(longest.count()) + 1;
  return Duration(static_cast<Duration::rep>(Wide{random} * choices >> 64));
}

Duration backoff(const BackoffRange& range, std::uint32_t i, std::uint64_t random) noexcept {
  return full_jitter(backoff_max(range, i), random);
}

RetryDecision decide_retry(const RetryPolicy& policy, const Error& error, const FailedAttempt& attempt) {
  if (!may_repeat(error, policy.idempotent)) return std::unexpected(GiveUp::not_repeatable);
  if (attempt.number >= policy.attempts_max || attempt.attempts_left <= 0) return std::unexpected(GiveUp::no_attempts);
  const Duration left = attempt.deadline.remaining(attempt.now);
  if (left <= Duration::zero()) return std::unexpected(GiveUp::no_time);
  // The jitter is drawn from the remaining time, so it can't miss the deadline; the server's delay can.
  const Duration longest = std::min(backoff_max(policy.backoff(), attempt.number), left - Duration(1));
  const Duration wait = std::max(full_jitter(longest, attempt.random), error.retry_after().value_or(Duration::zero()));
  if (wait >= left) return std::unexpected(GiveUp::no_time);
  return Deadline::after(attempt.now, wait).when();
}

Error gave_up(Error last, GiveUp reason, const FailedAttempt& attempt) {
  if (reason == GiveUp::not_repeatable) return last;
  std::string what = "gave up after " + std::to_string(attempt.number);
  what += (attempt.number == 1 ? " attempt, " : " attempts, ") + why(last, reason, attempt);
  Error error(last.code(), last.retry(), std::move(what));
  if (last.retry_after()) error = std::move(error).after(*last.retry_after());
  return std::move(error).because(std::move(last));
}

}  // namespace stint
