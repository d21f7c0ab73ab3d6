// Invariants, all under the lock:
// 1. A call is `running` from the moment it is queued until its thread has posted the awaiting chain.
// 2. There are never more calls than slots, and a thread is started whenever a call finds none idle; so every queued
//    call has a thread that will take it.
#include "stint/offload.hpp"

#include <system_error>

namespace stint {
namespace detail {

bool BlockingCallBase::await_suspend(std::coroutine_handle<>) noexcept {
  if (token().cancelled()) {
    (void)park();  // completes at once: a cancelled chain starts no call
    return true;
  }
  park_shielded();
  if (pool_.start(*this)) return true;
  unpark();
  return false;
}

void BlockingCallBase::wait_until_returned() noexcept {
  std::unique_lock lock(pool_.mutex_);
  pool_.returned_.wait(lock, [this] { return state_ != State::running; });
}

Error BlockingCallBase::refusal() const {
  return {Errc::unavailable, Retry::safe, "no thread could be started for the blocking pool " + pool_.name()};
}

}  // namespace detail

BlockingPool::BlockingPool(std::string name, std::uint32_t threads)
    : slots_(std::move(name), threads == 0 ? 1 : threads), threads_max_(threads) {
  STINT_ASSERT(threads <= kThreadsMax);
}

BlockingPool::~BlockingPool() {
  {
    const std::lock_guard lock(mutex_);
    STINT_ASSERT(queue_.empty() && "a blocking pool must outlive its callers");
    ending_ = true;
  }
  queued_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

/// Returns false if the call is over: it ran in place, or no thread could be started.
bool BlockingPool::start(detail::BlockingCallBase& call) noexcept {
  using State = detail::BlockingCallBase::State;
  if (threads_max_ == 0) {
    call.call();
    call.state_ = State::returned;
    return false;
  }
  {
    const std::lock_guard lock(mutex_);
    if (idle_ == 0) {
      try {
        threads_.emplace_back([this] { work(); });
      } catch (const std::exception&) {  // EAGAIN, or no memory
        call.state_ = State::refused;
        return false;
      }
    } else {
      --idle_;  // reserves that thread for this call
    }
    call.state_ = State::running;
    queue_.push_back(call);
  }
  queued_.notify_one();
  return true;
}

/// A thread counts as idle from the end of its call until a later one is queued for it.
void BlockingPool::work() noexcept {
  using State = detail::BlockingCallBase::State;
  std::unique_lock lock(mutex_);
  while (true) {
    queued_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    detail::BlockingCallBase& call = queue_.front();
    call.unlink();
    lock.unlock();
    call.call();
    lock.lock();
    call.state_ = State::returned;
    ++idle_;
    // Queued under the lock, woken after it. The executor can't be destroyed in between, nor can the frame, whose
    // destructor takes the lock.
    Executor& executor = call.executor();
    const bool asleep = executor.post_without_wake(call);
    returned_.notify_all();
    lock.unlock();
    if (asleep) executor.wake();
    lock.lock();
  }
}

}  // namespace stint
