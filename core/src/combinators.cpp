#include "stint/combinators.hpp"

namespace stint {

CancelToken* WithDeadlineBase::begin() noexcept {
  if (!park()) return nullptr;
  if (relative_) deadline_ = Deadline::after(executor().now(), deadline_.when().time_since_epoch());
  if (deadline_.passed(executor().now())) {
    unpark();
    too_late_ = true;
    return nullptr;
  }
  token_.emplace(token());
  token_->shorten(deadline_);
  if (!deadline_.is_never()) executor().arm(*this, deadline_.when());
  return &*token_;
}

void WithDeadlineBase::branch_ended(Chain&, End) noexcept {
  executor().disarm(*this);
  complete();
}

Error WithDeadlineBase::timed_out() { return {Errc::timed_out, "the work was stopped at its deadline"}; }

void SelectBase::await_suspend(std::coroutine_handle<>) noexcept {
  if (park()) executor().post(start_);
}

void SelectBase::begin() noexcept {
  if (token().cancelled()) return complete();  // the run loop stops the chain
  token_.emplace(token());
  token_->arbitrate();
  running_ = 1;  // for the start itself, so that a branch that ends at once does not complete the select
  start_branches();
  one_ended();
}

void SelectBase::one_ended() noexcept {
  if (--running_ == 0) complete();
}

/// A finished branch is never dropped for one that is only ready: its effect could not be undone.
void SelectBase::branch_ended(Chain& branch, End end) noexcept {
  if (end == End::finished && first_ == nullptr) {
    first_ = &branch;
    token_->cancel(Reason::lost_race);
  }
  one_ended();
}

bool SelectBase::may_resume(const Chain& branch) noexcept {
  if (preferred_ == nullptr) preferred_ = earliest_ready(&branch);
  return preferred_ == &branch;
}

void Cancelled::await_suspend(std::coroutine_handle<>) noexcept {
  if (!park()) return;
  if (watched_.cancelled()) return complete();
  STINT_ASSERT(&watched_.executor() == &executor());
  watch_.start(watched_, *this);
}

void FinallyDoBase::await_suspend(std::coroutine_handle<>) noexcept {
  park_shielded();
  shield_.emplace(executor());
  start_body(token());
}

void FinallyDoBase::branch_ended(Chain& branch, End) noexcept {
  if (&branch == &cleanup_) {
    executor().disarm(*this);
    return complete();
  }
  executor().arm(*this, Deadline::after(executor().now(), grace_).when());
  cleanup_.start(*this, *shield_);
}

}  // namespace stint
