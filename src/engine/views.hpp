/// The values of the engine's interface: submissions, runs as people see them, limits, health, receipts. The API, the
/// commands and the JSON shapes use them.
#pragma once

#include "domain/driver.hpp"
#include "domain/limit_entry.hpp"
#include "engine/engine.hpp"
#include "engine/timeline_core.hpp"
#include "engine/transcript_core.hpp"
#include "events/changes.hpp"
#include "store/snapshot.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stint::engine {

/// A submission for a run.
struct Submission {
  std::string id;                  ///< empty: a new one
  std::string agent;               ///< empty: `prompt` is the whole task
  bool agent_by_default = false;   ///< the caller named none: `agent` comes from the settings
  domain::ArgumentValues args;     ///< by name
  std::vector<std::string> words;  ///< as on a command line: values in order, `key=value`
  std::string prompt;              ///< without an agent's file
  std::string session, parent, key;
  std::optional<int> priority;  ///< absent: the agent's
  domain::BudgetSpec budget;
  /// An id in the form of a run's: the submissions that name it share tokens and cost of `budget`. Empty: none.
  std::string one_budget;
  std::optional<Duration> deadline;  ///< from now; of this and deadline_at the earlier counts
  std::optional<WallTime> deadline_at;
  Duration delay{};
  std::string driver, model, program;
  std::string directory;  ///< where it runs; empty: the checkout of the node that carries it
  std::string retry_of;
  std::vector<domain::RunInput::BudgetAbove> budgets_above;  ///< of a retry: those of the run before
  std::string trace;                                         ///< empty: a new one
  bool kept = false;                                         ///< only this process may carry it, as long as it lives
  bool parent_waits = false;  ///< `parent` keeps its permits until this run has ended: refused if it needs those
};
struct Submitted {
  std::string id;
  bool created = true;  ///< false: a run with this idempotency key existed
};

/// A run as people see it.
struct RunView {
  store::Run run;
  domain::RunInput input;
  domain::RunMemo memo;
  std::optional<std::string> carried_by;  ///< a worker of the node that answers
};

struct WhyView {
  std::string run;
  domain::RunState state = domain::RunState::queued;
  std::vector<domain::WaitReason> reasons;  ///< none: it does not wait
};

struct AgentView {
  std::string name, description, driver, usage;
  std::string refused;  ///< why it can't run; empty: it can
  std::optional<std::uint32_t> max_concurrency;
  std::vector<store::LimitUse> limits;
};

struct LimitView {
  std::string name;
  std::string home;  ///< process, host or cluster
  std::optional<std::uint32_t> capacity;
  std::int64_t held = 0;      ///< units
  std::uint64_t waiting = 0;  ///< requests in line
  bool paused = false;
  std::optional<WallTime> paused_until;
  std::vector<domain::LimitEntry> holders, line{};  ///< the earliest first; empty in a summary
};

/// The pool of a daemon, and its queues. Sizes count all queued runs, due or not, as the bounds do.
struct FleetHealth : PoolHealth {
  std::vector<store::QueueState> queues;  ///< of the agents of this daemon, and those with queued runs
  double queue_fullness = 0;              ///< of the fullest queue: at 1 an agent's runs are refused
};

/// Runs that batches of this daemon have acted on since it began, by what came of it.
struct BatchCounts {
  std::uint64_t done = 0, skipped = 0, failed = 0;
};

struct FleetStatus {
  Phase phase = Phase::stopped;  ///< of this daemon; stopped: no daemon answers
  std::string version, store;
  std::optional<FleetHealth> pool;
  store::Stats stats;
  std::uint64_t queue_capacity = 0;
  std::vector<LimitView> limits;             ///< summaries
  std::optional<domain::Shortage> shortage;  ///< why no run begins although there is work
  std::int64_t cost_micros_today = 0, tokens_today = 0;
  std::optional<std::int64_t> cost_micros_per_day;
  std::uint64_t notes_left_out = 0;  ///< notes (tools, spans) dropped beyond the bounds, since this daemon began
  BatchCounts batch_runs;
  std::uint64_t settlements_stale = 0;  ///< settlements of this daemon rejected because their fence was stale
};

/// An agent that can't run on this daemon.
struct RefusedAgent {
  std::string name, why;
};
inline constexpr std::size_t kRefusedAgentsMax = 50;  ///< listed in a look at the fleet

/// The whole fleet at one moment, as the first screen of the dashboard shows it. The status and the metrics are parts
/// of the same look, so that all of them agree.
struct FleetView : FleetStatus {
  WallTime as_of{};    ///< of everything that the store knows
  std::string cursor;  ///< of the feed: what follows it has happened since
  store::QueueSplit queue;
  std::vector<store::WaitGroup> parked;
  std::vector<RunView> running, needs, failures;  ///< bounded; `needs` waits for a person
  std::uint64_t needs_total = 0;
  std::vector<RefusedAgent> refused_agents;  ///< bounded, by name
  std::uint64_t refused_agents_total = 0;
  std::vector<store::NodeState> nodes;
  std::optional<Duration> drain_in;  ///< at the rate of the last minutes; none: unknown
};

/// What a cancel ended, proven.
struct Receipt {
  RunView run;
  std::vector<std::string> reached;             ///< ids of runs below it that were cancelled with it
  std::vector<std::string> permits_returned{};  ///< limits that it held before
  std::vector<std::string> permits_held{};      ///< … and still holds: some of its processes could not be ended
  Duration time{};
};

/// Absent values stay as they are.
struct ScaleRequest {
  std::optional<std::size_t> workers, min, max;
};

struct DrainRequest {
  std::optional<Duration> timeout;  ///< none: from the settings
  bool hurry = false;               ///< without a timeout, and without a grace period for runs already being ended
};

/// The run changes no more by itself: it is finished, in doubt, or waits for a person.
[[nodiscard]] bool is_at_rest(const store::Run& run) noexcept;

}  // namespace stint::engine
