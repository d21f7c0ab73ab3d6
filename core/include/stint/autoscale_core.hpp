/// How many workers a pool should have, as a pure rule: numbers and the moment go in, a decision comes out.
/// Nothing here waits, locks or looks at a clock.
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
  double up_utilization = 0.8;                       ///< grow above this share of busy workers,
  double up_queue = 0.5;                             ///< or above this share of the queue that a new worker could start
  double down_utilization = 0.3;                     ///< shrink below this share of busy workers
  Duration up_cool_down = std::chrono::seconds(10);  ///< from any change to the next growth
  Duration down_cool_down = std::chrono::seconds(30);  ///< from any change to the next shrinking
};

struct AutoscaleLoad {
  std::size_t workers = 0;    ///< that can take jobs
  std::size_t busy = 0;       ///< of them
  std::size_t startable = 0;  ///< queued jobs that a new worker could start at once
  std::size_t queue_capacity = 0;
  std::optional<TimePoint> changed_at;  ///< when the size last changed
};

struct AutoscaleDecision {
  enum class Why : std::uint8_t { fits, paused, below_min, above_max, busy, queue, quiet, cooling };

  std::size_t workers = 0;  ///< how many there should be
  Why why = Why::fits;

  friend bool operator==(const AutoscaleDecision&, const AutoscaleDecision&) = default;
};
[[nodiscard]] std::string_view to_string(AutoscaleDecision::Why why) noexcept;

/// Promises: between min and max, unless the pool is paused (0 workers: a person's decision, left alone); steps of
/// max(1, workers / 4); shrinks by idle workers only; grows again only after `up_cool_down`, shrinks only after
/// `down_cool_down`. A size out of bounds is brought back at once, whatever the cool-down.
[[nodiscard]] AutoscaleDecision autoscale(const AutoscaleOptions& options, const AutoscaleLoad& load,
                                          TimePoint now) noexcept;

}  // namespace stint
