/// The autoscaling rule of a worker pool as a pure function: load and time in, a decision out. No waiting, locks or
/// clock.
#pragma once

#include "stint/time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stint {

struct AutoscaleOptions {
  std::size_t min = 2;
  std::size_t max = 50;
  Duration check_every = std::chrono::seconds(10);
  double up_utilization = 0.8;                         ///< grow above this share of busy workers,
  double up_queue = 0.5;                               ///< or above this share of startable jobs in the queue
  double down_utilization = 0.3;                       ///< shrink below this share of busy workers
  Duration up_cool_down = std::chrono::seconds(10);    ///< between any change and the next growth
  Duration down_cool_down = std::chrono::seconds(30);  ///< between any change and the next shrinking
};

struct AutoscaleLoad {
  std::size_t workers = 0;    ///< workers that can take jobs
  std::size_t busy = 0;       ///< of those workers
  std::size_t startable = 0;  ///< queued jobs that a new worker could start at once
  std::size_t queue_capacity = 0;
  std::optional<TimePoint> changed_at;  ///< when the size last changed
};

struct AutoscaleDecision {
  enum class Why : std::uint8_t { fits, paused, below_min, above_max, busy, queue, quiet, cooling };

  std::size_t workers = 0;  ///< the size the pool should have
  Why why = Why::fits;

  friend bool operator==(const AutoscaleDecision&, const AutoscaleDecision&) = default;
};
[[nodiscard]] std::string_view to_string(AutoscaleDecision::Why why) noexcept;

/// Guarantees: the size stays between min and max, unless the pool is paused (0 workers, set by a person and left
/// alone); steps of max(1, workers / 4); only idle workers are removed; growth only after `up_cool_down`, shrinking
/// only after `down_cool_down`. A size out of bounds is corrected at once, regardless of the cool-down.
[[nodiscard]] AutoscaleDecision autoscale(const AutoscaleOptions& options, const AutoscaleLoad& load,
                                          TimePoint now) noexcept;

}  // namespace stint
