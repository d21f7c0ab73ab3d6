/// How long the machine has been up. since_boot() goes on while it is asleep: for leases that others count.
/// awake_since_boot() does not, as Clock does not.
#pragma once

#include "stint/time.hpp"

#include <ctime>

namespace stint {

inline Duration since_boot() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

inline Duration awake_since_boot() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace stint
