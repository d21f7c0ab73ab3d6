/// Options of a `WorkerPool` (`stint/worker_pool.hpp`) and its jobs. Plain values.
#pragma once

#include "stint/autoscale_core.hpp"
#include "stint/deadline.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace stint {

class Budget;

struct PoolOptions {
  std::string name = "workers";
  std::size_t workers = 10;
  std::size_t queue_capacity = 100;  ///< 0: a job is accepted only if a worker is idle
  Duration stale_after =
      std::chrono::seconds(120);  ///< a worker is stale after this long without a sign of life from its job
  Duration idle_beat = std::chrono::seconds(1);              ///< interval of an idle worker's heartbeat
  Duration drain_timeout = std::chrono::seconds(60);         ///< default of `DrainOptions::timeout`
  Duration retry_after = std::chrono::seconds(1);            ///< the hint in `full` and `closed`
  std::optional<AutoscaleOptions> autoscale = std::nullopt;  ///< absent: only `resize` changes the size
  /// How many queued jobs a new worker could start at once; absent: all of them. The autoscaler calls it on the pool's
  /// thread. For pools whose jobs first wait for a limit, where an additional worker would only wait too.
  std::function<std::size_t()> startable_queue_size = nullptr;
};

struct JobOptions {
  Deadline deadline = {};    ///< includes the time in the queue; after it the job is not started, or is stopped
  Budget* budget = nullptr;  ///< must outlive the job; null: the caller's for `submit`, else that of the pool's scope
  std::string label = {};    ///< for listings
};

struct DrainOptions {
  enum class Rest : std::uint8_t { hand_back, cancel };

  std::optional<Duration> timeout = std::nullopt;  ///< absent: `PoolOptions::drain_timeout`; zero or less: at once
  Rest rest = Rest::hand_back;  ///< for jobs that have not started by then; running ones are cancelled
};

}  // namespace stint
