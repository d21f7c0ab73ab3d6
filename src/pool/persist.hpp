/// Patience with a store that does not answer: what must be said is said again, ever more slowly.
#pragma once

#include "stint/error.hpp"
#include "stint/task.hpp"
#include "stint/time.hpp"

#include <algorithm>
#include <utility>

namespace stint::pool {

class Patience {
 public:
  static constexpr Duration kFirst = std::chrono::milliseconds(50), kMost = std::chrono::seconds(2);

  /// Not if the lease is over, or the request itself is wrong.
  [[nodiscard]] static bool may_ask_again(const Error& error) noexcept {
    return error == Errc::unavailable || error == Errc::timed_out || error == Errc::full ||
           error.retry() != Retry::never;
  }
  Task<> wait() { co_await sleep_for(std::exchange(pause_, std::min(2 * pause_, kMost))); }

 private:
  Duration pause_ = kFirst;
};

}  // namespace stint::pool
