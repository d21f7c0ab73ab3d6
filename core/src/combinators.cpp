#include "stint/combinators.hpp"

namespace stint {

CancelToken* WithDeadlineBase::begin() noexcept {
  if (!park()) return nullptr;
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
