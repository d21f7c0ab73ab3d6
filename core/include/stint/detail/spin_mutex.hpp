/// A spin lock for critical sections of some nanoseconds that never block: one atomic exchange to lock, a plain store
/// to unlock. A contended lock spins for about a microsecond, then yields, then sleeps briefly, so that a preempted
/// holder can run whatever the thread priorities. Unfair: callers that need an order keep it in the protected data.
/// (`std::mutex` costs two atomic exchanges and two calls, a third of a hand-over.)
#pragma once

#include "stint/detail/compiler.hpp"

#include <atomic>

namespace stint::detail {

class SpinMutex {
 public:
  SpinMutex() = default;
  SpinMutex(const SpinMutex&) = delete;
  SpinMutex& operator=(const SpinMutex&) = delete;

  void lock() noexcept {
    if (taken_.exchange(true, std::memory_order_acquire)) lock_contended();
  }
  bool try_lock() noexcept { return !taken_.exchange(true, std::memory_order_acquire); }
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }

 private:
  /// Preserves nearly all registers, so that callers need not save them on the uncontended path.
  STINT_PRESERVE_MOST void lock_contended() noexcept;
  std::atomic<bool> taken_ = false;
};

}  // namespace stint::detail
