#include "stint/retry.hpp"

#include "stint/budget.hpp"

#include <bit>
#include <string>

namespace stint {

namespace {

std::uint64_t mix(std::uint64_t value) noexcept {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

}  // namespace

std::uint64_t SeededRandom::next() noexcept {
  state_ += 0x9e3779b97f4a7c15ULL;
  return mix(state_);
}

namespace detail {

RetryLoop::RetryLoop(CancelToken& scope, CancelToken& own, const RetryPolicy& policy,
                     const RetryOptions& options) noexcept
    : scope_(scope), own_(own), budget_(scope.budget()), policy_(policy), options_(options) {
  if (budget_ != nullptr) budget_->start(now());
}

/// The earliest of the scope's deadline, the chain's own (shortened in between), and the budget's, which moves when it
/// is paused.
Deadline RetryLoop::deadline() const noexcept {
  const Deadline deadline = scope_.deadline().sooner(own_.deadline());
  return budget_ == nullptr ? deadline : deadline.sooner(budget_->deadline(now()));
}

Result<> RetryLoop::begin_attempt() {
  if (scope_.cancelled()) return fail(end(GiveUp::not_repeatable, Error(Errc::cancelled, "the scope was cancelled")));
  if (deadline().passed(now())) {
    const bool budgets = budget_ != nullptr && budget_->deadline(now()).passed(now());
    Error late(budgets ? Errc::exhausted : Errc::timed_out, budgets ? "the budget is exhausted: its time is used up"
                                                                    : "the deadline passed before the first attempt");
    return fail(end(GiveUp::no_time, std::move(late)));
  }
  if (budget_ != nullptr && policy_.counts_attempts) {
    auto counted = budget_->spend({.attempts = 1});
    if (!counted) return fail(end(GiveUp::no_attempts, std::move(counted).error()));
  }
  if (token_) token_->spend();
  token_.reset();
  ++attempt_;
  attempt_deadline_ = deadline().sooner(Deadline::after(now(), policy_.attempt_time_max));
  return {};
}

void RetryLoop::succeeded() noexcept {
  if (options_.tokens != nullptr) options_.tokens->succeeded();
}

/// True if the deadline stopped the attempt; a task that is ready at its deadline wins.
bool RetryLoop::was_stopped(const Error& error) const noexcept {
  return error.code() == Errc::timed_out && attempt_deadline_.passed(now());
}

Result<TimePoint> RetryLoop::failed(Error error) {
  const bool stopped = was_stopped(error);
  if (stopped && deadline().passed(now())) {
    // The outcome of this attempt is unknown, but the previous error explains more than the lack of time does.
    std::string what = "attempt " + std::to_string(attempt_) + " was stopped at the deadline";
    return fail(end(GiveUp::no_time, Error(Errc::timed_out, Retry::unknown, std::move(what))));
  }
  if (stopped) {
    std::string what = "attempt " + std::to_string(attempt_) + " exceeded the time limit per attempt";
    error = Error(Errc::timed_out, Retry::unknown, std::move(what));
  }
  last_ = std::move(error);
  FailedAttempt attempt = facts();
  attempt.random = random();
  const RetryDecision decision = decide_retry(policy_, *last_, attempt);
  if (!decision) return fail(end(decision.error(), *last_));
  if (options_.tokens != nullptr) {
    token_ = options_.tokens->take();
    if (!token_) return fail(end(GiveUp::no_token, *last_));
  }
  return *decision;
}

Error RetryLoop::no_permit(Error error) {
  return end(deadline().passed(now()) ? GiveUp::no_time : GiveUp::no_permit, std::move(error));
}

FailedAttempt RetryLoop::facts() const noexcept {
  const bool counted = budget_ != nullptr && policy_.counts_attempts;
  return {.number = attempt_,
          .now = now(),
          .deadline = deadline(),
          .attempts_left = counted ? budget_->remaining(now()).attempts : Allowance::kUnlimited};
}

std::uint64_t RetryLoop::random() noexcept {
  if (options_.random != nullptr) return options_.random->next();
  const auto ticks = static_cast<std::uint64_t>(now().time_since_epoch().count());
  return mix(mix(ticks) ^ std::bit_cast<std::uintptr_t>(this) ^ attempt_);
}

/// The last real error, if there is one; else the reason why the first attempt can't start.
Error RetryLoop::end(GiveUp reason, Error otherwise) {
  if (!last_) return otherwise;
  return gave_up(std::move(*last_), reason, facts());
}

}  // namespace detail
}  // namespace stint
