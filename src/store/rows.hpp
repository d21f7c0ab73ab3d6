/// What a store on one machine keeps, row by row, without the rules: those are in ledger.hpp, once for all who keep
/// rows themselves. Everything happens inside of one transaction, or where nobody else can look. Times are the store's
/// (store_clock.hpp), but for deadlines, which are wall times.
#pragma once

#include "domain/limit_rule.hpp"
#include "store/store.hpp"
#include "store/store_clock.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stint::store {

using AgentNumber = std::int64_t;
using LimitNumber = std::int64_t;
using SetNumber = std::int64_t;

/// Of a set, by their numbers; with weights.
using Members = std::vector<std::pair<LimitNumber, std::uint32_t>>;

/// How long budgets of an agent's ready runs have stood still, because a limit of the agent was paused.
struct Standstill {
  Duration total{};               ///< up to `since`
  bool paused = false;            ///< from `since` on a limit is paused, …
  std::optional<WallTime> until;  ///< … until then; none: until it is resumed
  WallTime since{};
  AwakeTime since_awake{};
};

struct AgentRow {
  AgentNumber number = 0;  ///< 0: not there yet
  AgentEntry entry;        ///< but not its limits: they are the set's
  SetNumber set = 0;
  Standstill standstill;
};

struct LimitRow {
  LimitNumber number = 0;
  std::string name;
  std::optional<std::uint32_t> capacity;
  std::optional<std::uint32_t> configured;  ///< what a configuration said last
  bool paused = false;
  std::optional<WallTime> paused_until;  ///< none although paused: until somebody resumes it
  std::optional<std::uint32_t> ramp;
  std::optional<AgentNumber> turn_of, last_turn_of;
  WallTime turn_until{};
};
[[nodiscard]] inline bool is_paused(const LimitRow& limit, WallTime now) {
  return limit.paused && (!limit.paused_until || *limit.paused_until > now);
}
/// A limit as a member of a set: limits never change in a set, so a running run holds what it was claimed with.
struct LimitMember {
  LimitRow limit;
  std::uint32_t weight = 1;
  std::int64_t units = 0, runs = 0;  ///< held, over all sets
  bool shared = false;               ///< several agents use it
};

struct NodeRow {
  enum class State : std::uint8_t { live, draining, dead };
  NodeNumber number = 0;
  std::string label;
  State state = State::live;
};
[[nodiscard]] constexpr std::string_view to_string(NodeRow::State state) noexcept {
  return state == NodeRow::State::live ? "live" : state == NodeRow::State::draining ? "draining" : "dead";
}

/// What an agent has to claim.
struct Queue {
  std::int64_t runs = 0;  ///< counted as far as was asked
  std::int64_t rank = 0;  ///< of the first
};

using FamilyNumber = std::int64_t;
struct FamilyRow {
  FamilyNumber number = 0;
  FamilyUse sum;
};

struct RunRow {
  Run run;  ///< but neither input nor result, nor when it expires
  AgentNumber agent = 0;
  RunNumber parent = 0;
  std::int64_t rank = 0;
  std::optional<Duration> budget, budget_left;
  std::optional<AwakeTime> budget_until;
  /// The run is ready, and `budget_until` a time of its agent's clock, which stands still while a limit is paused.
  bool by_agents_clock = false;
  std::string parked_on;  ///< a limit
  SetNumber set = 0;      ///< with which it was claimed last; 0: it holds nothing
  std::optional<NodeNumber> kept_for;
  Use reported;  ///< by the running attempt; counted already
};

struct EventRow {
  RunNumber run = 0;  ///< 0: of the fleet
  std::int64_t seq = 0, fence = 0;
  std::string cause;
  std::optional<domain::RunState> state;
  domain::Hold hold = domain::Hold::none;
  std::optional<NodeNumber> node;
  std::string error, data;
  WallTime at{};
};

/// Of a claim: what a run must outlast.
struct Moment {
  WallTime wall{};
  AwakeTime drawn{};  ///< of the agent's clock
};
/// When something is due next, by each clock. None: nothing is.
struct NextDue {
  std::optional<WallTime> asleep, deadline;
  std::optional<AwakeTime> budget;  ///< of runs that are not ready
};

class Rows {
 public:
  Rows() = default;
  virtual ~Rows() = default;
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  virtual Result<std::optional<AgentRow>> agent(std::string_view name) = 0;
  virtual Result<std::optional<AgentRow>> agent(AgentNumber number) = 0;
  virtual Result<std::vector<AgentRow>> agents() = 0;  ///< by name
  virtual Result<> put(AgentRow& agent) = 0;           ///< but not its standstill
  virtual Result<> put(AgentNumber agent, const Standstill& standstill) = 0;
  virtual Result<SetNumber> make_set(const Members& members) = 0;
  virtual Result<std::vector<SetNumber>> sets_with(LimitNumber limit) = 0;

  virtual Result<LimitRow> limit(std::string_view name) = 0;  ///< made if there is none
  virtual Result<std::vector<LimitMember>> limits_of(SetNumber set) = 0;
  /// Only those that are ramping up, as nearly never any is.
  virtual Result<std::vector<LimitRow>> ramping(SetNumber set) = 0;
  virtual Result<std::vector<LimitMember>> limits() = 0;
  virtual Result<Members> members(SetNumber set) = 0;
  virtual Result<> put(const LimitRow& limit) = 0;
  /// Running runs that hold units of the limit, the earliest claim first.
  virtual Result<std::vector<LimitHolder>> holders(LimitNumber limit, std::size_t most) = 0;
  /// Ready runs whose agents use the limit, by rank.
  virtual Result<std::vector<LimitWaiter>> waiters(LimitNumber limit, std::size_t most) = 0;

  virtual Result<NodeNumber> add_node(const std::string& label, WallTime now) = 0;
  virtual Result<std::optional<NodeRow>> node(NodeNumber number) = 0;
  /// A dead one is removed: nothing is left of it but its number, which is never used again.
  virtual Result<> put(const NodeRow& node) = 0;
  /// Removes what dead nodes may have left, in the rows and beside them.
  virtual Result<> sweep_nodes() = 0;
  /// It lives, as its own beat says.
  virtual Result<> renew(NodeNumber number, WallTime now) = 0;
  /// Its lease is over, whatever its row says.
  virtual Result<bool> is_lapsed(NodeNumber number, WallTime now) = 0;
  virtual Result<std::vector<NodeRow>> nodes() = 0;  ///< but not the dead
  virtual Result<std::vector<NodeState>> node_states(WallTime now) = 0;

  virtual Result<std::optional<RunRow>> run(RunNumber number) = 0;
  virtual Result<std::optional<RunRow>> run(std::string_view id) = 0;
  virtual Result<std::optional<RunRow>> run_of_key(AgentNumber agent, std::string_view key) = 0;
  /// By rank. Here and below: without those that another living node than `by` keeps.
  virtual Result<std::vector<RunRow>> ready(AgentNumber agent, NodeNumber by, Moment now, std::size_t most) = 0;
  virtual Result<std::vector<RunRow>> owned(NodeNumber node) = 0;
  virtual Result<std::optional<RunRow>> head_of(std::string_view session) = 0;  ///< the oldest unfinished
  virtual Result<std::vector<RunNumber>> children(RunNumber parent) = 0;
  virtual Result<std::vector<RunRow>> parked_on(std::string_view limit) = 0;
  virtual Result<std::vector<RunRow>> asleep(WallTime until, std::size_t most) = 0;
  /// Here and below: of those that can still expire.
  virtual Result<std::vector<RunRow>> past_deadline(WallTime wall, std::size_t most) = 0;
  virtual Result<std::vector<RunRow>> past_budget(AwakeTime until, std::size_t most) = 0;  ///< but not the ready
  /// Of the ready: the agents that have runs with a budget that has begun, each with the first that ends.
  virtual Result<std::vector<std::pair<AgentNumber, AwakeTime>>> ready_budgets() = 0;
  virtual Result<std::vector<RunRow>> ready_past_budget(AgentNumber agent, AwakeTime until, std::size_t most) = 0;
  virtual Result<NextDue> next_due() = 0;
  virtual Result<bool> has_queued(AgentNumber agent, std::size_t least) = 0;
  virtual Result<bool> has_ready(AgentNumber agent, NodeNumber by) = 0;
  virtual Result<bool> has_ready(AgentNumber agent) = 0;  ///< for whomever: also a kept one
  /// Of those that are ready and that no living node keeps.
  virtual Result<Queue> queue(AgentNumber agent, std::size_t most) = 0;
  /// Adds a run and answers its number; the one in `run` is ignored.
  virtual Result<RunNumber> add(const RunRow& run, std::string input) = 0;
  virtual Result<> put(const RunRow& run) = 0;
  virtual Result<std::string> input(RunNumber run) = 0;
  virtual Result<> put_result(RunNumber run, std::string result) = 0;
  virtual Result<> add_event(EventRow&& event) = 0;
  /// What the day's sum grows by, with the attempts that were settled.
  virtual Result<> add_day_use(AgentNumber agent, WallTime now, const Use& more) = 0;
  virtual Result<Use> used_on(WallTime day) = 0;
  virtual Result<> add_output(RunNumber run, std::string_view text) = 0;
  virtual Result<> put_output(RunNumber run, const Output& output) = 0;  ///< there was none
  virtual Result<std::vector<RunNumber>> finished_before(WallTime time, std::size_t most) = 0;
  /// With all that belongs to it. A family goes with the last of its runs.
  virtual Result<> forget(RunNumber run) = 0;

  virtual Result<std::optional<FamilyRow>> family(std::string_view head) = 0;
  virtual Result<FamilyRow> make_family(const FamilyUse& sum) = 0;
  virtual Result<> join(FamilyNumber family, RunNumber run) = 0;
  virtual Result<std::vector<FamilyRow>> families_of(RunNumber run) = 0;  ///< by head
  virtual Result<> add_use(FamilyNumber family, const Use& more) = 0;

  /// When a prune found nothing more to forget.
  virtual Result<std::optional<WallTime>> pruned_at() = 0;
  virtual Result<> put_pruned_at(WallTime at) = 0;
};

}  // namespace stint::store
