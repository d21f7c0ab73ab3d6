/// Uptime of the machine. since_boot() includes time asleep, for leases whose expiry other machines count.
/// awake_since_boot() excludes it, as Clock does.
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
