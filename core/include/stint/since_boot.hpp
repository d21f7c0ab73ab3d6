/// How long the machine has been up. Goes on while it is asleep, which Clock does not: for leases that others count.
#pragma once

#include "stint/time.hpp"

#include <ctime>

namespace stint {

inline Duration since_boot() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace stint
