/// The library's only clock: `steady_clock`, which never jumps or goes back. Wall-clock dates are converted to
/// durations at the edge.
#pragma once

#include "stint/detail/compiler.hpp"

#include <chrono>

namespace stint {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

}  // namespace stint
