/// The one clock of the library: `steady_clock`, which neither jumps nor goes back. Wall-clock dates are turned into
/// durations at the edge.
#pragma once

#include "stint/detail/compiler.hpp"

#include <chrono>

namespace stint {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

}  // namespace stint
