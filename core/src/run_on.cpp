#include "stint/run_on.hpp"

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
  self.token_.emplace(self.there_, self.token());  // the caller is parked: its token stands still
  self.there_.enroll(self);
  self.start_there(*self.token_);
}

/// On the calling thread. Once nothing is left there, a cancel has nothing to reach.
void RunOnBase::cancel() noexcept {
  int references = references_.load(std::memory_order_relaxed);
  while (references != 0) {
    if (!references_.compare_exchange_weak(references, references + 1, std::memory_order_acq_rel)) continue;
    return there_.post(cancel_);
  }
}

void RunOnBase::CancelThere::run() noexcept {
  if (self.token_) self.token_->cancel(Reason::user);
  self.let_go();
}

void RunOnBase::branch_ended(Chain&, End) noexcept {
  ExecutorRoot::unlink();
  finish_there(false);
  token_.reset();
  let_go();
}

/// The other executor goes, and forgets a cancel that is still on its way to it.
void RunOnBase::abandon() noexcept {
  finish_there(true);
  token_.reset();
  Executor& here = *here_;
  references_.store(0, std::memory_order_release);
  here.post(*this);
}

void RunOnBase::let_go() noexcept {
  Executor& here = *here_;
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) here.post(*this);
}

}  // namespace stint
