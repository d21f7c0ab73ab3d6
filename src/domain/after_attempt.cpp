#include "domain/after_attempt.hpp"

#include "stint/http_status.hpp"

#include <algorithm>

namespace stint::domain {
namespace {

using namespace std::chrono_literals;

constexpr Duration kAfterReset = 5s;      // clocks differ, and a window that opens is crowded
constexpr Duration kUnknownWindow = 60s;  // a rate limit that does not say until when

AfterAttempt over(RunEnd end, std::string why = {}) {
  AfterAttempt after;
  after.end = end;
  after.why = std::move(why);
  return after;
}

std::string seconds(Duration duration) {
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(duration).count()) + " s";
}

/// The wait must fit into what is left, and an attempt must be left.
AfterAttempt again(const AttemptFacts& facts, Duration wait, bool counts, bool resume, const std::string& why) {
  if (counts && facts.number >= facts.attempts_max) {
    return over(RunEnd::failed, why + "; that was attempt " + std::to_string(facts.number) + " of " +
                                    std::to_string(facts.attempts_max));
  }
  if (wait >= facts.time_left) {
    return over(RunEnd::expired, why + "; the next attempt could begin in " + seconds(wait) + ", and the budget has " +
                                     seconds(facts.time_left) + " left");
  }
  AfterAttempt after;
  after.again = true;
  after.wait = wait;
  after.counts = counts;
  after.resume = resume;
  after.why = why;
  return after;
}

Duration backoff(const AttemptFacts& facts) {
  RetryPolicy policy;
  policy.base = facts.retry.base.value_or(policy.base);
  policy.cap = facts.retry.cap.value_or(policy.cap);
  return full_jitter(backoff_max(policy, facts.number), facts.random);
}

AfterAttempt after_rate_limit(const Outcome& outcome, const AttemptFacts& facts) {
  Duration wait = outcome.retry_after.value_or(kUnknownWindow);
  if (outcome.resets_at) wait = std::max<Duration>(Duration::zero(), *outcome.resets_at - facts.wall_now) + kAfterReset;
  const bool resume = facts.tools_used && !outcome.conversation.empty();
  if (facts.tools_used && !resume) return over(RunEnd::failed, outcome.message);
  return again(facts, wait, false, resume, outcome.message);
}

/// Before it did anything it may be repeated; after, it can only go on.
AfterAttempt after_api_error(const Outcome& outcome, const AttemptFacts& facts) {
  const HttpFailure failure = classify_http_status(outcome.http_status.value_or(503));
  const bool window = !failure.needs_window || outcome.retry_after.has_value();
  if (failure.retry == Retry::never || !window) return over(RunEnd::failed, outcome.message);
  const bool resume = facts.tools_used && !outcome.conversation.empty();
  if (facts.tools_used && !resume) return over(RunEnd::failed, outcome.message);
  return again(facts, std::max(backoff(facts), outcome.retry_after.value_or(Duration::zero())), true, resume,
               outcome.message);
}

AfterAttempt after_crash(const Outcome& outcome, const AttemptFacts& facts) {
  const bool can_resume = !outcome.conversation.empty();
  const OnCrash rule = facts.on_crash.value_or(can_resume ? OnCrash::resume : OnCrash::doubt);
  if (rule == OnCrash::rerun) return again(facts, backoff(facts), true, false, outcome.message);
  if (rule == OnCrash::resume && can_resume) return again(facts, backoff(facts), true, true, outcome.message);
  return over(RunEnd::in_doubt, outcome.message);
}

}  // namespace

std::string_view to_string(RunEnd end) noexcept {
  switch (end) {
    case RunEnd::succeeded: return "succeeded";
    case RunEnd::failed: return "failed";
    case RunEnd::cancelled: return "cancelled";
    case RunEnd::expired: return "expired";
    case RunEnd::in_doubt: return "in_doubt";
  }
  return "unknown";
}

AfterAttempt after_attempt(const Outcome& outcome, const AttemptFacts& facts) {
  switch (outcome.kind) {
    case OutcomeKind::succeeded: return over(RunEnd::succeeded);
    case OutcomeKind::cancelled: return over(RunEnd::cancelled, outcome.message);
    case OutcomeKind::over_budget: return over(RunEnd::expired, outcome.message);
    case OutcomeKind::in_doubt: return over(RunEnd::in_doubt, outcome.message);
    case OutcomeKind::rate_limited: return after_rate_limit(outcome, facts);
    case OutcomeKind::api_error: return after_api_error(outcome, facts);
    case OutcomeKind::crashed:
    case OutcomeKind::stalled: return after_crash(outcome, facts);
    case OutcomeKind::agent_error:
    case OutcomeKind::not_logged_in:
    case OutcomeKind::permission_denied:
    case OutcomeKind::out_of_memory: break;
  }
  return over(RunEnd::failed, outcome.message);
}

}  // namespace stint::domain
