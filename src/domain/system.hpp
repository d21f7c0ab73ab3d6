/// Clocks and randomness, injected so that a simulation can replace them.
#pragma once

#include "stint/retry_after.hpp"
#include "stint/time.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace stint::domain {

struct System {
  std::function<WallTime()> wall_now;  ///< may jump either way
  std::function<std::uint64_t()> random;
  /// Clocks of this boot that never jump: `elapsed` goes on while the machine sleeps (CLOCK_BOOTTIME), `awake` does not
  /// (CLOCK_MONOTONIC). Empty in tests whose wall clock does not jump: it then serves for all three.
  std::function<Duration()> elapsed{};
  std::function<Duration()> awake{};
  std::string boot{};  ///< identifies the boot of both clocks; processes with the same value may compare them

  [[nodiscard]] Duration elapsed_now() const { return elapsed ? elapsed() : Duration(wall_now().time_since_epoch()); }
  [[nodiscard]] Duration awake_now() const { return awake ? awake() : elapsed_now(); }
};

[[nodiscard]] inline std::int64_t to_unix_ms(WallTime time) noexcept { return time.time_since_epoch().count(); }

}  // namespace stint::domain
