/// A lock for sections of some nanoseconds that never block: one atomic exchange to take it, a plain store to let go.
/// Who finds it taken spins for about a microsecond, then yields, then sleeps in short naps, so that a holder that was
/// preempted can run, whatever the priorities. Waiters are not ordered: whoever needs an order keeps it under the lock.
/// (`std::mutex` costs two atomic exchanges and two calls: a third of a hand-over.)
#pragma once

#include "stint/detail/compiler.hpp"

#include <atomic>

namespace stint::detail {

class BriefMutex {
 public:
  BriefMutex() = default;
  BriefMutex(const BriefMutex&) = delete;
  BriefMutex& operator=(const BriefMutex&) = delete;

  void lock() noexcept {
    if (taken_.exchange(true, std::memory_order_acquire)) lock_contended();
  }
  bool try_lock() noexcept { return !taken_.exchange(true, std::memory_order_acquire); }
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }

 private:
  /// Keeps nearly all registers, so that who calls it need not, on the way on which it is not called.
  STINT_PRESERVE_MOST void lock_contended() noexcept;
  std::atomic<bool> taken_ = false;
};

}  // namespace stint::detail
