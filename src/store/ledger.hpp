/// The rules of a store on one machine, over rows that another class keeps. Each call is one step: it happens
/// completely, or the caller must roll it back if the rows fail. The semantics are documented in store.hpp.
#pragma once

#include "store/rows.hpp"
#include "store/snapshot.hpp"

#include <set>

namespace stint::store {

class Ledger {
 public:
  static constexpr std::size_t kBatchMax = 1000;  // runs woken, expired or lost in one step

  Ledger(Rows& rows, const domain::System& system) : Ledger(rows, system, StoreClock(system)) {}
  Ledger(Rows& rows, const domain::System& system, StoreClock clock)
      : rows_(rows), system_(system), clock_(std::move(clock)) {}

  Result<> define(const AgentEntry& entry);
  Result<> resize(const std::string& limit, std::optional<std::uint32_t> capacity);
  Result<> configure(const std::map<std::string, std::uint32_t>& capacities, const std::vector<std::string>& agents);
  Result<> pause(const std::string& limit, std::optional<Duration> length);
  Result<std::uint64_t> resume(const std::string& limit);
  Result<std::vector<LimitState>> limits(std::uint32_t listed);

  Result<NodeNumber> enrol(const std::string& label, NodeKind kind = NodeKind::any);
  Result<Beat> beat(NodeNumber node);
  Result<> drain(NodeNumber node);
  Result<> leave(NodeNumber node);
  Result<std::vector<NodeState>> nodes() { return rows_.node_states(beat_time()); }
  Result<> announce(NodeNumber node, std::string cause, std::string data);

  /// Moves the texts out of `fresh`; settle() does the same with the settlement.
  Result<Accepted> enqueue(NewRun&& fresh);
  Result<std::vector<std::pair<std::string, domain::RunState>>> cancel(const std::string& id);
  Result<domain::RunState> resolve(const std::string& id, domain::Resolution how);
  Result<> answer(const std::string& id);

  Result<std::vector<Ready>> ready(std::uint32_t most);
  /// As the arguments of Store::claim().
  struct ClaimDetails {
    std::string only{}, waited{};
  };
  Result<std::vector<Claim>> claim(NodeNumber node, const std::string& agent, std::uint32_t most,
                                   const ClaimDetails& details);
  Result<std::vector<Claim>> owned(NodeNumber node);
  Result<std::optional<domain::RunState>> settle(NodeNumber node, Settlement&& settlement);
  Result<bool> mark(NodeNumber node, AttemptKey attempt, bool unsafe);
  Result<bool> note(NodeNumber node, AttemptKey attempt, std::string cause, std::string data);
  Result<bool> append_output(NodeNumber node, AttemptKey attempt, std::string_view text);
  Result<bool> put_message(NodeNumber node, AttemptKey attempt, const Message& message);
  Result<bool> provider_answered(NodeNumber node, AttemptKey attempt);
  Result<std::optional<std::vector<FamilyUse>>> report(NodeNumber node, AttemptKey attempt, const Use& so_far);
  Result<std::vector<FamilyUse>> used(const std::vector<std::string>& heads);

  // Batches (ledger_batch.cpp).
  Result<Accepted> begin_batch(NewBatch&& fresh);
  Result<std::optional<Batch>> batch(const std::string& id);
  Result<std::vector<Batch>> batches(BatchNumber before, std::uint32_t most);
  Result<bool> has_batch_for(NodeNumber node);
  Result<std::optional<BatchClaim>> claim_batch(NodeNumber node);
  Result<std::optional<BatchClaim>> advance_batch(const BatchClaim& claim, const BatchStep& step);
  Result<> release_batch(const BatchClaim& claim);
  Result<std::optional<Batch>> stop_batch(const std::string& id);

  Result<Ticked> tick();
  /// `place`: of a ready run, in the queue of its agent.
  Result<std::vector<Why>> why(const std::string& id, std::optional<std::int64_t> place);
  Result<Duration> sample(NodeNumber node, const Sample& sample);
  Result<Series> series(const SeriesQuery& query);
  Result<std::vector<EndedRun>> ended(const std::string& agent, Duration within, std::uint32_t most);
  Result<Snapshot> snapshot(std::uint32_t listed, std::uint32_t text_bytes_max);
  Result<std::uint64_t> prune(Duration older_than, std::uint32_t most);
  /// True if no process has completed a prune within `every`.
  Result<bool> is_prune_due(Duration every);
  Result<std::uint64_t> prune_if_due(Duration keep, Duration every, std::uint32_t most);

  Result<std::vector<AgentEntry>> agents();
  /// False: the run exists already.
  Result<bool> load(const RunRecord& record);

  // Converts rows to the form that callers and other stores see: wall times and expiry.
  Result<Run> shown(RunRow row);
  Result<std::vector<Run>> shown(std::vector<RunRow> rows);
  /// Adds the content of the rows to their records.
  Result<std::vector<RunRecord>> shown(std::vector<std::pair<RunRow, RunRecord>> rows);
  [[nodiscard]] std::vector<Event> shown(std::vector<Event> events) const;
  /// With times of the store's clock instead of wall times.
  [[nodiscard]] Filter kept(Filter filter) const;
  [[nodiscard]] const StoreClock& clock() const noexcept { return clock_; }

 private:
  [[nodiscard]] WallTime now() const { return clock_.now(); }
  /// A node that is suspended together with the store misses no heartbeat.
  [[nodiscard]] WallTime beat_time() const { return clock_.beat_time(); }
  /// How long the budgets of the agent's ready runs have stood still so far.
  [[nodiscard]] Duration stood_still(const AgentRow& agent) const;
  [[nodiscard]] AwakeTime agents_clock(const AgentRow& agent) const;
  /// Call it after a limit of the agent was paused or resumed, or the agent got other limits.
  Result<> note_pauses(const AgentRow& agent);
  Result<> note_pauses(LimitNumber limit);
  /// For pauses that have ended, or during which the machine slept: such a pause has no exact end.
  Result<> note_ends_of_pauses();
  /// Switches the row to the clock that its state uses for the budget.
  Result<> choose_clock(RunRow& row);
  Result<std::optional<Duration>> budget_left(const RunRow& row);
  /// The smaller of budget and deadline. None: it has neither.
  Result<std::optional<Duration>> time_left(const RunRow& row);
  Result<std::vector<RunRow>> expiring();
  Result<std::optional<Duration>> next_due();
  Result<RunRow> must_find(const std::string& id);
  Result<std::optional<RunRow>> find_owned(NodeNumber node, AttemptKey attempt);
  /// Writes the row and the event of its change. `owner`: the previous owner.
  Result<> save(RunRow& row, std::string cause, std::optional<NodeNumber> owner = {}, std::string data = {});
  Result<std::optional<SeriesCounts>> count_step(std::optional<SeriesHead> head, WallTime at);
  Result<> add_fleet_event(std::string_view cause, std::string data, std::optional<NodeNumber> node = {});
  Result<std::vector<AgentLine>> lines(const std::vector<Tally::Line>& tallied);
  Result<> promote(const std::string& session);
  Result<> wake(RunRow& row, std::string cause);
  Result<> stop(RunRow& row, domain::Stop stop);
  Result<domain::RunState> settle_row(RunRow& row, Settlement&& settlement);
  Result<> widen(SetNumber set);
  Result<> resize(LimitRow& limit, std::optional<std::uint32_t> capacity);
  Result<> pause(const std::string& limit, std::optional<Duration> length, bool probed);
  /// The limit as seen by the agent. Ends the turn of an agent that has nothing to start. For a limit in `held_above`
  /// only a pause applies.
  Result<domain::LimitLoad> view(const LimitMember& use, AgentNumber agent, const std::set<LimitNumber>& held_above);
  Result<std::int64_t> permits(const AgentRow& agent, std::uint32_t most, const std::set<LimitNumber>& held_above);
  /// Whether the run is kept for another living node.
  Result<bool> is_kept(const RunRow& row, NodeNumber from);
  /// The limits that its running ancestors hold.
  Result<std::set<LimitNumber>> held_above(const RunRow& row);
  Result<SetNumber> set_without(SetNumber set, const std::set<LimitNumber>& limits);
  /// The runs that the node may start now, each with the set that it will hold.
  Result<std::vector<RunRow>> first_ones(NodeNumber node, const AgentRow& agent, std::uint32_t most);
  Result<std::vector<RunRow>> named_one(NodeNumber node, const AgentRow& agent, const std::string& id);
  Result<Why> why_held(const RunRow& row);
  /// None: this limit does not delay the run.
  Result<std::optional<Why>> why_limited(const RunRow& row, const LimitMember& member,
                                         const std::set<LimitNumber>& held_above);
  Result<std::vector<LimitHolder>> holders(LimitNumber limit, std::uint32_t most);
  Result<> add_claim(const RunRow& row, std::vector<Claim>& claims);
  Result<> check(const NewRun& fresh, const AgentRow& agent, std::optional<RunRow>& parent);
  /// Fails if an ancestor holds the session: they would wait for each other.
  Result<> check_session(const std::string& session, const RunRow& parent);
  Result<> join_family(const std::string& head, RunNumber run);
  Result<> load_families(const std::vector<FamilyUse>& sums, RunNumber run);
  Result<> load_messages(const std::vector<std::string>& messages, RunNumber run);
  /// `so_far` is the total of the attempt: adds the difference to the run, its families and the day. `settled`: how
  /// many attempts that ends, 0 or 1.
  Result<> count_use(RunRow& row, const Use& so_far, std::int64_t settled);

  /// The batch that the node carries or may take over.
  Result<std::optional<BatchRow>> batch_for(NodeNumber node);
  Result<Batch> shown(BatchRow row);
  Result<BatchClaim> next_of(const BatchRow& row);
  Result<> tell_batch(const Batch& batch, std::string cause);
  Result<> end_batch(BatchRow& row, BatchState state);
  Result<> forget_batches(WallTime before, std::size_t most);

  Rows& rows_;
  const domain::System& system_;
  StoreClock clock_;
};

}  // namespace stint::store
