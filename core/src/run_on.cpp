#include "stint/run_on.hpp"

#include <mutex>

namespace stint {

RunOnBase::~RunOnBase() {
  STINT_ASSERT(references_.load(std::memory_order_acquire) == 0 && "the calling executor must outlive run_on");
}

void RunOnBase::await_suspend(std::coroutine_handle<>) noexcept {
  if (!park()) return;
  here_ = &executor();
  references_.store(1, std::memory_order_relaxed);
  there_.post(start_);
}

void RunOnBase::Start::run() noexcept {
  self.token_.emplace(self.there_, self.token());  // the caller is parked, so its token does not change
  self.there_.add_root(self);
  self.there_.begin_work();
  if (self.cancelled_) self.token_->cancel(Reason::user);
  self.start_there(*self.token_);
}

/// On the calling thread. Once the task has left the other executor, there is nothing to cancel.
void RunOnBase::cancel() noexcept {
  const std::lock_guard lock(mutex_);
  if (left_there_) return;
  references_.fetch_add(1, std::memory_order_relaxed);
  there_.post(cancel_);
}

void RunOnBase::CancelThere::run() noexcept {
  self.cancelled_ = true;
  if (self.token_) self.token_->cancel(Reason::user);
  self.drop_reference();
}

void RunOnBase::branch_ended(Chain&, End) noexcept {
  ExecutorRoot::unlink();
  finish_there(false);
  token_.reset();
  there_.end_work();
  leave_there();
}

/// The other executor is being destroyed: the task was running there, or its start was still queued. A posted cancel is
/// dropped separately.
void RunOnBase::executor_destroyed() noexcept {
  finish_there(true);
  token_.reset();
  leave_there();
}

void RunOnBase::leave_there() noexcept {
  mutex_.lock();
  left_there_ = true;
  mutex_.unlock();
  drop_reference();
}

void RunOnBase::drop_reference() noexcept {
  Executor& here = *here_;
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) here.post(*this);
}

}  // namespace stint
