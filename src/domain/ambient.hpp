/// What a program takes from the world and a simulation makes up: the date, and chance.
#pragma once

#include "stint/retry_after.hpp"

#include <chrono>
#include <cstdint>
#include <functional>

namespace stint::domain {

struct Ambient {
  std::function<WallTime()> wall_now;
  std::function<std::uint64_t()> random;
};

[[nodiscard]] inline std::int64_t to_unix_ms(WallTime time) noexcept { return time.time_since_epoch().count(); }

}  // namespace stint::domain
