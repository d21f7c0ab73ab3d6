#include "stint/autoscale_core.hpp"

#include <algorithm>

namespace stint {
namespace {

using Why = AutoscaleDecision::Why;

double share(std::size_t part, std::size_t whole) noexcept {
  if (whole == 0) return part == 0 ? 0.0 : 1.0;
  return static_cast<double>(part) / static_cast<double>(whole);
}

std::size_t step(std::size_t workers) noexcept { return std::max<std::size_t>(1, workers / 4); }

bool cooling(const AutoscaleLoad& load, Duration cool_down, TimePoint now) noexcept {
  return load.changed_at && now - *load.changed_at < cool_down;
}

}  // namespace

std::string_view to_string(Why why) noexcept {
  switch (why) {
    case Why::fits: return "the size fits";
    case Why::paused: return "paused: no workers by request";
    case Why::below_min: return "below the minimum";
    case Why::above_max: return "above the maximum";
    case Why::busy: return "most workers are busy";
    case Why::queue: return "the queue is filling";
    case Why::quiet: return "most workers are idle";
    case Why::cooling: return "changed a moment ago";
  }
  return "unknown";
}

AutoscaleDecision autoscale(const AutoscaleOptions& options, const AutoscaleLoad& load, TimePoint now) noexcept {
  const std::size_t workers = load.workers;
  const std::size_t most = std::max(options.max, options.min);
  if (workers == 0) return {0, Why::paused};
  if (workers < options.min) return {options.min, Why::below_min};
  const std::size_t idle = workers - std::min(load.busy, workers);
  if (workers > most) return {workers - std::min(workers - most, idle), Why::above_max};

  const bool busy = share(load.busy, workers) > options.up_utilization;
  const bool queue = share(load.startable, load.queue_capacity) > options.up_queue;
  if (busy || queue) {
    if (workers == most) return {workers, Why::fits};
    if (cooling(load, options.up_cool_down, now)) return {workers, Why::cooling};
    return {std::min(workers + step(workers), most), busy ? Why::busy : Why::queue};
  }
  if (share(load.busy, workers) < options.down_utilization && workers > options.min) {
    if (cooling(load, options.down_cool_down, now)) return {workers, Why::cooling};
    return {workers - std::min({step(workers), workers - options.min, idle}), Why::quiet};
  }
  return {workers, Why::fits};
}

}  // namespace stint
