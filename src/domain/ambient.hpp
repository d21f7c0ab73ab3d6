/// What a program takes from the world and a simulation makes up: the date, and chance.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace stint::domain {

using WallTime = std::chrono::system_clock::time_point;

struct Ambient {
  std::function<WallTime()> wall_now;
  std::function<std::uint64_t()> random;
};

[[nodiscard]] inline std::int64_t to_unix_ms(WallTime time) noexcept {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}
[[nodiscard]] inline WallTime from_unix_ms(std::int64_t ms) noexcept {
  return WallTime(std::chrono::duration_cast<WallTime::duration>(std::chrono::milliseconds(ms)));
}

}  // namespace stint::domain
