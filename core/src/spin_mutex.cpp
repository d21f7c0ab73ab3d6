#include "stint/detail/spin_mutex.hpp"

#include <ctime>
#include <thread>

namespace stint::detail {
namespace {

constexpr int kSpins = 40;   // pauses of about 25 ns: longer than any critical section that is not preempted
constexpr int kYields = 10;  // then the holder is probably not running
constexpr timespec kNap{.tv_sec = 0, .tv_nsec = 50'000};

}  // namespace

STINT_PRESERVE_MOST void SpinMutex::lock_contended() noexcept {
  for (int tries = 0;; ++tries) {
    if (!taken_.load(std::memory_order_relaxed) && try_lock()) return;
    if (tries < kSpins) {
      spin_pause();
    } else if (tries < kSpins + kYields) {
      std::this_thread::yield();
    } else {
      nanosleep(&kNap, nullptr);
    }
  }
}

}  // namespace stint::detail
