/// The rows of a store on one machine, without the rules: ledger.hpp applies those to every implementation of Rows.
/// All calls happen inside one transaction, or on data that no other thread sees. Times are the store's
/// (store_clock.hpp), except deadlines, which are wall times.
#pragma once

#include "domain/limit_rule.hpp"
#include "domain/numbers.hpp"
#include "store/series.hpp"
#include "store/store.hpp"
#include "store/store_clock.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stint::store {

using domain::AgentNumber;
using LimitNumber = domain::Number<struct LimitNumberTag>;
using SetNumber = domain::Number<struct SetNumberTag>;
using FamilyNumber = domain::Number<struct FamilyNumberTag>;

/// The limits of a set with their weights, by number.
using Members = std::vector<std::pair<LimitNumber, std::uint32_t>>;

/// How long the budgets of an agent's ready runs have stood still because a limit of the agent was paused.
struct Standstill {
  Duration total{};               ///< until `since`
  bool paused = false;            ///< a limit is paused from `since` …
  std::optional<WallTime> until;  ///< … until this moment; none: until resume()
  WallTime since{};
  AwakeTime since_awake{};
};

struct AgentRow {
  AgentNumber number{};  ///< 0: not stored yet
  AgentEntry entry;      ///< without its limits: the set has them
  SetNumber set{};
  Standstill standstill;
};

struct LimitRow {
  LimitNumber number{};
  std::string name;
  std::optional<std::uint32_t> capacity;
  std::optional<std::uint32_t> configured;  ///< the last configured capacity
  bool paused = false;
  std::optional<WallTime> paused_until;  ///< none while paused: until resume()
  std::optional<std::uint32_t> ramp;
  std::optional<AgentNumber> turn_of, last_turn_of;
  WallTime turn_until{};
};
[[nodiscard]] inline bool is_paused(const LimitRow& limit, WallTime now) {
  return limit.paused && (!limit.paused_until || *limit.paused_until > now);
}
/// A limit as a member of a set. A set is immutable, so a running run holds what it was claimed with.
struct LimitMember {
  LimitRow limit;
  std::uint32_t weight = 1;
  std::int64_t units = 0, runs = 0;  ///< held, over all sets
  bool shared = false;               ///< several agents use it
};

/// A place in the line of a limit: the smaller one is due first.
struct LinePlace {
  std::int64_t rank = 0;
  RunNumber run{};

  friend auto operator<=>(const LinePlace&, const LinePlace&) = default;
};

struct NodeRow {
  enum class State : std::uint8_t { live, draining, dead };
  NodeNumber number{};
  std::string label;
  NodeKind kind = NodeKind::any;
  State state = State::live;
};
[[nodiscard]] constexpr std::string_view to_string(NodeRow::State state) noexcept {
  return state == NodeRow::State::live ? "live" : state == NodeRow::State::draining ? "draining" : "dead";
}

/// The claimable runs of an agent.
struct Queue {
  std::int64_t runs = 0;  ///< counted up to the caller's bound
  std::int64_t rank = 0;  ///< of the first run
};

struct FamilyRow {
  FamilyNumber number{};
  FamilyUse sum;
};

struct RunRow {
  Run run;  ///< without input, result and expiry
  AgentNumber agent{};
  RunNumber parent{};
  std::int64_t rank = 0;
  std::optional<Duration> budget, budget_left;
  std::optional<AwakeTime> budget_until;
  /// The run is ready, and `budget_until` is a time of its agent's clock, which stands still while a limit is paused.
  bool by_agents_clock = false;
  std::string parked_on;  ///< a limit
  SetNumber set{};        ///< of the last claim; 0: it holds nothing
  std::optional<NodeNumber> kept_for;
  Use reported;  ///< by the running attempt; already counted
};

/// A batch; its failures and its set are rows of their own.
struct BatchRow {
  Batch batch;
  Fence fence{};
};

[[nodiscard]] inline bool is_ready(const Run& run) {
  return run.state == domain::RunState::queued && run.hold == domain::Hold::none;
}

struct EventRow {
  RunNumber run{};  ///< 0: an event of the fleet
  std::int64_t seq = 0;
  Fence fence{};
  std::string cause;
  std::optional<domain::RunState> state;
  domain::Hold hold = domain::Hold::none;
  std::optional<NodeNumber> node;
  std::string error, data;
  WallTime at{};
};

/// The times of a claim: a run that expires before them is not claimed.
struct Moment {
  WallTime wall{};
  AwakeTime drawn{};  ///< by the agent's clock
};
/// When something is due next, by each clock. None: nothing is due.
struct NextDue {
  std::optional<WallTime> asleep, deadline;
  std::optional<AwakeTime> budget;  ///< of runs that are not ready
};

/// Sums for a snapshot. `oldest`: since when the first of them waits.
struct Tally {
  struct Held {
    domain::RunState state = domain::RunState::queued;  ///< queued or parked
    domain::Hold hold = domain::Hold::none;
    std::string limit;  ///< of a parked run
    std::uint64_t runs = 0;
    std::optional<WallTime> oldest;
    std::optional<WallTime> until;  ///< the earliest moment from which one of them may go on
  };
  struct Line {
    AgentNumber agent{};
    std::int64_t rank = 0;
    std::uint64_t runs = 0, kept = 0;
    std::optional<WallTime> oldest;
  };
  std::map<domain::RunState, std::uint64_t> counts;  ///< states without runs may be missing
  std::vector<Held> held;                            ///< in any order
  std::vector<Line> lines;                           ///< of ready runs, in any order
  std::uint64_t bytes = 0;
};
/// The last runs that ended.
struct LastEnds {
  std::uint64_t worked = 0;         ///< of those, that succeeded or failed
  std::optional<WallTime> first{};  ///< when the first of them ended
};
/// Runs that a snapshot lists.
enum class Listed : std::uint8_t {
  running,   ///< by start
  needs,     ///< in doubt, or parked until a person answers; by number
  failures,  ///< failed or expired; the last first
};

class Rows : public SeriesRows {
 public:
  using SeriesRows::put;

  virtual Result<std::optional<AgentRow>> agent(std::string_view name) = 0;
  virtual Result<std::optional<AgentRow>> agent(AgentNumber number) = 0;
  virtual Result<std::vector<AgentRow>> agents() = 0;  ///< by name
  virtual Result<> put(AgentRow& agent) = 0;           ///< without its standstill
  virtual Result<> put(AgentNumber agent, const Standstill& standstill) = 0;
  virtual Result<SetNumber> make_set(const Members& members) = 0;
  virtual Result<std::vector<SetNumber>> sets_with(LimitNumber limit) = 0;

  virtual Result<LimitRow> limit(std::string_view name) = 0;  ///< creates it if it does not exist
  virtual Result<std::vector<LimitMember>> limits_of(SetNumber set) = 0;
  /// Only those that are ramping up; usually none.
  virtual Result<std::vector<LimitRow>> ramping(SetNumber set) = 0;
  virtual Result<std::vector<LimitMember>> limits() = 0;
  virtual Result<Members> members(SetNumber set) = 0;
  virtual Result<> put(const LimitRow& limit) = 0;
  /// Running runs that hold units of the limit, earliest claim first.
  virtual Result<std::vector<LimitHolder>> holders(LimitNumber limit, std::size_t most) = 0;
  /// Ready runs whose agents use the limit, by rank.
  virtual Result<std::vector<LimitWaiter>> waiters(LimitNumber limit, std::size_t most) = 0;
  /// How many of them there are: before that place, or in all; counted up to `most`.
  virtual Result<std::uint64_t> count_waiters(LimitNumber limit, std::optional<LinePlace> before, std::size_t most) = 0;

  virtual Result<NodeNumber> add_node(const std::string& label, NodeKind kind, WallTime now) = 0;
  virtual Result<std::optional<NodeRow>> node(NodeNumber number) = 0;
  /// Removes a dead node: only its number remains used, which is never given again.
  virtual Result<> put(const NodeRow& node) = 0;
  /// Removes leftovers of dead nodes: rows and lease files.
  virtual Result<> sweep_nodes() = 0;
  /// Records a heartbeat of the node.
  virtual Result<> renew(NodeNumber number, WallTime now) = 0;
  /// Whether its lease is over, whatever its row contains.
  virtual Result<bool> is_lapsed(NodeNumber number, WallTime now) = 0;
  virtual Result<std::vector<NodeRow>> nodes() = 0;  ///< without the dead
  virtual Result<std::vector<NodeState>> node_states(WallTime now) = 0;

  virtual Result<std::optional<RunRow>> run(RunNumber number) = 0;
  virtual Result<std::optional<RunRow>> run(std::string_view id) = 0;
  virtual Result<std::optional<RunRow>> run_of_key(AgentNumber agent, std::string_view key) = 0;
  /// By rank. This and the following exclude runs that are kept for a living node other than `by`.
  virtual Result<std::vector<RunRow>> ready(AgentNumber agent, NodeNumber by, Moment now, std::size_t most) = 0;
  virtual Result<std::vector<RunRow>> owned(NodeNumber node) = 0;
  virtual Result<std::optional<RunRow>> head_of(std::string_view session) = 0;  ///< the oldest unfinished run
  virtual Result<std::vector<RunNumber>> children(RunNumber parent) = 0;
  virtual Result<std::vector<RunRow>> parked_on(std::string_view limit) = 0;
  virtual Result<std::vector<RunRow>> asleep(WallTime until, std::size_t most) = 0;
  /// This and the following: only runs that can still expire.
  virtual Result<std::vector<RunRow>> past_deadline(WallTime wall, std::size_t most) = 0;
  virtual Result<std::vector<RunRow>> past_budget(AwakeTime until, std::size_t most) = 0;  ///< excludes ready runs
  /// The agents that have ready runs with a budget that has begun, each with the earliest end.
  virtual Result<std::vector<std::pair<AgentNumber, AwakeTime>>> ready_budgets() = 0;
  virtual Result<std::vector<RunRow>> ready_past_budget(AgentNumber agent, AwakeTime until, std::size_t most) = 0;
  virtual Result<NextDue> next_due() = 0;
  virtual Result<bool> has_queued(AgentNumber agent, std::size_t least) = 0;
  virtual Result<bool> has_ready(AgentNumber agent, NodeNumber by) = 0;
  virtual Result<bool> has_ready(AgentNumber agent) = 0;  ///< for any node, including kept runs
  /// Of the ready runs that are not kept for a living node.
  virtual Result<Queue> queue(AgentNumber agent, std::size_t most) = 0;
  /// Adds a run and returns its number; ignores the number in `run`.
  virtual Result<RunNumber> add(const RunRow& run, std::string input) = 0;
  virtual Result<> put(const RunRow& run) = 0;
  virtual Result<std::string> input(RunNumber run) = 0;
  virtual Result<> put_result(RunNumber run, std::string result) = 0;
  virtual Result<> add_event(EventRow&& event) = 0;
  /// What the sums of the hour and its day grow by, with the attempts that were settled.
  virtual Result<> add_day_use(AgentNumber agent, WallTime now, const Use& more) = 0;
  virtual Result<Use> used_on(WallTime day) = 0;
  virtual Result<> add_output(RunNumber run, std::string_view text) = 0;
  virtual Result<> put_output(RunNumber run, const Output& output) = 0;  ///< the run must have none
  /// How many bytes the run's messages up to and including number `at` have; none: there is no such message.
  virtual Result<std::optional<std::uint64_t>> message_end(RunNumber run, std::uint32_t at) = 0;
  /// Adds the message after removing those from its number on. `end`: the value for message_end().
  virtual Result<> put_message(RunNumber run, const Message& message, std::uint64_t end) = 0;
  virtual Result<std::vector<RunNumber>> finished_before(WallTime time, std::size_t most) = 0;
  /// Deletes the run with everything that belongs to it. A family is deleted with the last of its runs.
  virtual Result<> forget(RunNumber run) = 0;

  virtual Result<std::optional<FamilyRow>> family(std::string_view head) = 0;
  virtual Result<FamilyRow> make_family(const FamilyUse& sum) = 0;
  virtual Result<> join(FamilyNumber family, RunNumber run) = 0;
  virtual Result<std::vector<FamilyRow>> families_of(RunNumber run) = 0;  ///< by head
  virtual Result<> add_use(FamilyNumber family, const Use& more) = 0;

  virtual Result<std::optional<BatchRow>> batch(std::string_view id) = 0;
  virtual Result<std::optional<BatchRow>> batch_of_key(std::string_view key) = 0;
  virtual Result<std::vector<BatchRow>> batches(BatchNumber before, std::size_t most) = 0;  ///< newest first
  virtual Result<std::vector<BatchRow>> open_batches() = 0;                                 ///< not ended; oldest first
  /// Adds a batch with its set; ignores the number in `batch`.
  virtual Result<> add(const BatchRow& batch, const std::vector<std::string>& runs) = 0;
  virtual Result<> put(const BatchRow& batch) = 0;
  /// The runs of its set from place `at` on: at least one if there is one, at most kBatchStepMax.
  virtual Result<std::vector<std::string>> batch_runs(BatchNumber batch, std::uint64_t at) = 0;
  virtual Result<> add_failure(BatchNumber batch, std::uint64_t at, const BatchFailure& failure) = 0;
  virtual Result<std::vector<BatchFailure>> failures(BatchNumber batch) = 0;  ///< in the order of the set
  virtual Result<std::vector<BatchNumber>> batches_ended_before(WallTime time, std::size_t most) = 0;
  virtual Result<> forget(BatchNumber batch) = 0;
  virtual Result<Tally> tally() = 0;
  /// Among at most `most` runs that ended after `since`, the last ones.
  virtual Result<LastEnds> last_ends(WallTime since, std::size_t most) = 0;
  /// Input and result as in Filter.
  virtual Result<std::vector<RunRow>> listed(Listed which, std::size_t most, std::uint32_t text_bytes_max) = 0;
  virtual Result<std::vector<QueueState>> queues() = 0;  ///< by name
  virtual Result<std::int64_t> last_event() = 0;
  /// Deletes events of the fleet from before that time.
  virtual Result<> forget_fleet_events(WallTime before) = 0;

  /// When a prune last found nothing more to delete.
  virtual Result<std::optional<WallTime>> pruned_at() = 0;
  virtual Result<> put_pruned_at(WallTime at) = 0;
};

}  // namespace stint::store
