/// How a `WorkerPool` (`stint/worker_pool.hpp`) and its jobs are set up. Plain values.
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
  std::size_t queue_capacity = 100;                          ///< 0: a job is taken only if a worker is free
  Duration stale_after = std::chrono::seconds(120);          ///< without a sign of life from its job
  Duration idle_beat = std::chrono::seconds(1);              ///< how often an idle worker counts as beating
  Duration drain_timeout = std::chrono::seconds(60);         ///< when `drain` is not told otherwise
  Duration retry_after = std::chrono::seconds(1);            ///< the hint in `full` and `closed`
  std::optional<AutoscaleOptions> autoscale = std::nullopt;  ///< absent: the size changes by `resize` only
  /// How many queued jobs a new worker could start at once; absent: all of them. Called by the autoscaler on the pool's
  /// thread. For pools whose jobs first wait for a limit: a worker more would only wait there too.
  std::function<std::size_t()> startable_queue_size = nullptr;
};

struct JobOptions {
  Deadline deadline = {};    ///< covers the queue too: after it the job is not started, or stopped
  Budget* budget = nullptr;  ///< must outlive the job; null: with `submit` the caller's, else the pool's scope's
  std::string label = {};    ///< for listings
};

struct DrainOptions {
  enum class Rest : std::uint8_t { hand_back, cancel };

  std::optional<Duration> timeout = std::nullopt;  ///< absent: `PoolOptions::drain_timeout`; not positive: at once
  Rest rest = Rest::hand_back;  ///< what becomes of jobs that have not started by then; those that run are cancelled
};

}  // namespace stint
