/// What can be seen of a `WorkerPool` (`stint/worker_pool.hpp`): ids, the states of a worker and how they follow each
/// other, and the listing that `health()` gives. Plain values.
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

/// Names an accepted job: numbers count up in the order of acceptance and are never reused. 0 names none.
struct JobId {
  std::uint64_t number = 0;
  std::uint32_t slot = 0;  ///< where the pool looks for it
  friend auto operator<=>(JobId, JobId) noexcept = default;
};
[[nodiscard]] std::string to_string(JobId id);

enum class WorkerState : std::uint8_t {
  idle,      ///< waits for a job
  busy,      ///< carries a job
  draining,  ///< finishes what it carries (or, while the pool drains, what is queued) and then stops
  stopped,   ///< gone; seen by nobody, since a stopped worker leaves the list
};
[[nodiscard]] std::string_view to_string(WorkerState state) noexcept;

/// The whole state machine. What is not here does not happen: `busy` never follows `draining`.
struct WorkerTransition {
  WorkerState from, to;
};
inline constexpr std::array kWorkerTransitions{
    WorkerTransition{WorkerState::idle, WorkerState::busy},         // takes a job
    WorkerTransition{WorkerState::busy, WorkerState::idle},         // its job has ended
    WorkerTransition{WorkerState::idle, WorkerState::draining},     // chosen by a resize, or the pool drains
    WorkerTransition{WorkerState::busy, WorkerState::draining},     // the same while it carries a job
    WorkerTransition{WorkerState::draining, WorkerState::stopped},  // nothing left to do
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
  Duration avg_time{};         ///< of what it completed
  Duration avg_failed_time{};  ///< of what failed, apart: a quick failure must not look like quick work
  /// Busy: since the job last showed life, by a beat or by an await that resumed since the last look. Idle: since the
  /// last idle beat.
  Duration last_heartbeat_ago{};
  bool stale = false;
  std::optional<JobId> job;
  std::string job_label;
  Duration job_running_for{};
};

struct PoolHealth {
  std::string name;
  bool draining = false;        ///< or drained: takes no new jobs
  std::size_t pool_size = 0;    ///< workers in the list, those that finish their last job included
  std::size_t target_size = 0;  ///< what was asked for
  std::optional<std::pair<std::size_t, std::size_t>> bounds;  ///< of the autoscaler; none: the size is fixed
  std::size_t queue_size = 0;
  std::size_t queue_capacity = 0;
  std::size_t waiting_for_room = 0;  ///< submitters whose jobs are not accepted yet
  double utilization = 0;            ///< workers that carry a job, of all; 0 if there are none
  std::uint64_t total_accepted = 0;
  std::uint64_t total_completed = 0;
  std::uint64_t total_failed = 0;
  std::uint64_t total_cancelled = 0;
  std::uint64_t total_handed_back = 0;
  std::uint64_t results_dropped = 0;   ///< nobody waited for them, and there is no `on_done`
  std::uint64_t callback_errors = 0;   ///< exceptions of `on_done`
  std::uint64_t autoscale_errors = 0;  ///< exceptions of the hook; the autoscaler goes on
  std::string autoscale_last_error;
  std::size_t stale_workers = 0;
  std::vector<WorkerHealth> workers;  ///< oldest first
};

}  // namespace stint
