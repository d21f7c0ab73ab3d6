/// Observable state of a `WorkerPool` (`stint/worker_pool.hpp`): ids, worker states and their transitions, and the
/// snapshot that `health()` returns. Plain values.
#pragma once

#include "stint/time.hpp"

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint {

/// `worker-000`, `worker-001`, …; never reused within a pool.
struct WorkerId {
  std::uint32_t number = 0;
  friend auto operator<=>(WorkerId, WorkerId) noexcept = default;
};
[[nodiscard]] std::string to_string(WorkerId id);

/// Identifies an accepted job. Numbers increase in the order of acceptance and are never reused; 0 means none.
struct JobId {
  std::uint64_t number = 0;
  std::uint32_t slot = 0;  ///< index into the pool's table of jobs
  friend auto operator<=>(JobId, JobId) noexcept = default;
};
[[nodiscard]] std::string to_string(JobId id);

enum class WorkerState : std::uint8_t {
  idle,      ///< waits for a job
  busy,      ///< runs a job
  draining,  ///< finishes its job (or, while the pool drains, the queued ones) and then stops
  stopped,   ///< never visible: a stopped worker leaves the list
};
[[nodiscard]] std::string_view to_string(WorkerState state) noexcept;

/// The complete state machine; any other transition is a bug: `busy` never follows `draining`.
struct WorkerTransition {
  WorkerState from, to;
};
inline constexpr std::array kWorkerTransitions{
    WorkerTransition{WorkerState::idle, WorkerState::busy},         // takes a job
    WorkerTransition{WorkerState::busy, WorkerState::idle},         // its job has ended
    WorkerTransition{WorkerState::idle, WorkerState::draining},     // chosen by a resize, or the pool drains
    WorkerTransition{WorkerState::busy, WorkerState::draining},     // the same while it runs a job
    WorkerTransition{WorkerState::draining, WorkerState::stopped},  // no work left
    WorkerTransition{WorkerState::idle, WorkerState::stopped},      // its scope was cancelled
    WorkerTransition{WorkerState::busy, WorkerState::stopped},      // the same
};
[[nodiscard]] constexpr bool may_become(WorkerState from, WorkerState to) noexcept {
  return std::ranges::any_of(kWorkerTransitions,
                             [=](const WorkerTransition& each) { return each.from == from && each.to == to; });
}

struct WorkerHealth {
  WorkerId id;
  WorkerState state = WorkerState::idle;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t cancelled = 0;
  Duration avg_time{};         ///< of completed jobs
  Duration avg_failed_time{};  ///< of failed jobs, kept apart: fast failures must not look like fast work
  /// Busy: since the job's last sign of life, either a heartbeat or a resumed await observed by the last check. Idle:
  /// since the last idle heartbeat.
  Duration last_heartbeat_ago{};
  bool stale = false;
  std::optional<JobId> job;
  std::string job_label;
  Duration job_running_for{};
};

struct PoolHealth {
  std::string name;
  bool draining = false;        ///< draining or drained: accepts no new jobs
  std::size_t pool_size = 0;    ///< workers in the list, including those that finish their last job
  std::size_t target_size = 0;  ///< the requested size
  std::optional<std::pair<std::size_t, std::size_t>> bounds;  ///< of the autoscaler; empty: the size is fixed
  std::size_t queue_size = 0;
  std::size_t queue_capacity = 0;
  std::size_t waiting_for_room = 0;  ///< submitters whose jobs are not accepted yet
  double utilization = 0;            ///< share of workers that run a job; 0 without workers
  std::uint64_t total_accepted = 0;
  std::uint64_t total_completed = 0;
  std::uint64_t total_failed = 0;
  std::uint64_t total_cancelled = 0;
  std::uint64_t total_handed_back = 0;
  std::uint64_t results_dropped = 0;   ///< results without a waiter and without an `on_done` callback
  std::uint64_t callback_errors = 0;   ///< exceptions of `on_done`
  std::uint64_t autoscale_errors = 0;  ///< exceptions of the hook; the autoscaler continues
  std::string autoscale_last_error;
  std::size_t stale_workers = 0;
  std::vector<WorkerHealth> workers;  ///< oldest first
};

}  // namespace stint
