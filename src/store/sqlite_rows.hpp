/// Rows in a SQLite file. Lives on one thread with its database, inside a transaction that the caller opens.
///
/// A node's lease is a lock: its process holds `nodes/<number>.lock` beside the database, and the kernel releases it
/// when the process is gone. So a death is detected at once, and a frozen process is never considered dead. The
/// modification time of that file is the node's last heartbeat: a heartbeat writes nothing to the database.
#pragma once

#include "os/fd.hpp"
#include "store/rows.hpp"
#include "store/sqlite_db.hpp"

#include <set>

namespace stint::store {

class SqliteRows final : public Rows {
 public:
  /// `leases`: the directory of the lock files.
  SqliteRows(Database& database, std::string leases) : database_(database), leases_(std::move(leases)) {}

  Result<std::optional<AgentRow>> agent(std::string_view name) override;
  Result<std::optional<AgentRow>> agent(AgentNumber number) override;
  Result<std::vector<AgentRow>> agents() override;
  Result<> put(AgentRow& agent) override;
  Result<> put(AgentNumber agent, const Standstill& standstill) override;
  Result<SetNumber> make_set(const Members& members) override;
  Result<std::vector<SetNumber>> sets_with(LimitNumber limit) override;
  Result<LimitRow> limit(std::string_view name) override;
  Result<std::vector<LimitMember>> limits_of(SetNumber set) override;
  Result<std::vector<LimitRow>> ramping(SetNumber set) override;
  Result<std::vector<LimitMember>> limits() override;
  Result<Members> members(SetNumber set) override;
  Result<> put(const LimitRow& limit) override;
  Result<std::vector<LimitHolder>> holders(LimitNumber limit, std::size_t most) override;
  Result<std::vector<LimitWaiter>> waiters(LimitNumber limit, std::size_t most) override;
  Result<std::uint64_t> count_waiters(LimitNumber limit, std::optional<LinePlace> before, std::size_t most) override;
  Result<NodeNumber> add_node(const std::string& label, NodeKind kind, WallTime now) override;
  Result<std::optional<NodeRow>> node(NodeNumber number) override;
  Result<> put(const NodeRow& node) override;
  Result<> sweep_nodes() override;
  Result<> renew(NodeNumber number, WallTime now) override;
  Result<bool> is_lapsed(NodeNumber number, WallTime now) override;
  Result<std::vector<NodeRow>> nodes() override;
  Result<std::vector<NodeState>> node_states(WallTime now) override;
  Result<std::optional<RunRow>> run(RunNumber number) override;
  Result<std::optional<RunRow>> run(std::string_view id) override;
  Result<std::optional<RunRow>> run_of_key(AgentNumber agent, std::string_view key) override;
  Result<std::vector<RunRow>> ready(AgentNumber agent, NodeNumber by, Moment now, std::size_t most) override;
  Result<std::vector<RunRow>> owned(NodeNumber node) override;
  Result<std::optional<RunRow>> head_of(std::string_view session) override;
  Result<std::vector<RunNumber>> children(RunNumber parent) override;
  Result<std::vector<RunRow>> parked_on(std::string_view limit) override;
  Result<std::vector<RunRow>> asleep(WallTime until, std::size_t most) override;
  Result<std::vector<RunRow>> past_deadline(WallTime wall, std::size_t most) override;
  Result<std::vector<RunRow>> past_budget(AwakeTime until, std::size_t most) override;
  Result<std::vector<std::pair<AgentNumber, AwakeTime>>> ready_budgets() override;
  Result<std::vector<RunRow>> ready_past_budget(AgentNumber agent, AwakeTime until, std::size_t most) override;
  Result<NextDue> next_due() override;
  Result<bool> has_queued(AgentNumber agent, std::size_t least) override;
  Result<bool> has_ready(AgentNumber agent, NodeNumber by) override;
  Result<bool> has_ready(AgentNumber agent) override;
  Result<Queue> queue(AgentNumber agent, std::size_t most) override;
  Result<RunNumber> add(const RunRow& run, std::string input) override;
  Result<> put(const RunRow& run) override;
  Result<std::string> input(RunNumber run) override;
  Result<> put_result(RunNumber run, std::string result) override;
  Result<> add_event(EventRow&& event) override;
  Result<> add_day_use(AgentNumber agent, WallTime now, const Use& more) override;
  Result<Use> used_on(WallTime day) override;
  Result<> add_output(RunNumber run, std::string_view text) override;
  Result<> put_output(RunNumber run, const Output& output) override;
  Result<std::optional<std::uint64_t>> message_end(RunNumber run, std::uint32_t at) override;
  Result<> put_message(RunNumber run, const Message& message, std::uint64_t end) override;
  Result<std::vector<RunNumber>> finished_before(WallTime time, std::size_t most) override;
  Result<> forget(RunNumber run) override;
  Result<std::optional<FamilyRow>> family(std::string_view head) override;
  Result<FamilyRow> make_family(const FamilyUse& sum) override;
  Result<> join(FamilyNumber family, RunNumber run) override;
  Result<std::vector<FamilyRow>> families_of(RunNumber run) override;
  Result<> add_use(FamilyNumber family, const Use& more) override;
  Result<std::optional<BatchRow>> batch(std::string_view id) override;
  Result<std::optional<BatchRow>> batch_of_key(std::string_view key) override;
  Result<std::vector<BatchRow>> batches(BatchNumber before, std::size_t most) override;
  Result<std::vector<BatchRow>> open_batches() override;
  Result<> add(const BatchRow& batch, const std::vector<std::string>& runs) override;
  Result<> put(const BatchRow& batch) override;
  Result<std::vector<std::string>> batch_runs(BatchNumber batch, std::uint64_t at) override;
  Result<> add_failure(BatchNumber batch, std::uint64_t at, const BatchFailure& failure) override;
  Result<std::vector<BatchFailure>> failures(BatchNumber batch) override;
  Result<std::vector<BatchNumber>> batches_ended_before(WallTime time, std::size_t most) override;
  Result<> forget(BatchNumber batch) override;
  Result<std::optional<WallTime>> pruned_at() override;
  Result<> put_pruned_at(WallTime at) override;
  Result<std::optional<SeriesHead>> series_head() override;
  Result<> put(const SeriesHead& head) override;
  Result<std::optional<SeriesPoint>> point(std::chrono::seconds step, WallTime at) override;
  Result<> put(std::chrono::seconds step, const SeriesPoint& point) override;
  Result<> forget_points(std::chrono::seconds step, WallTime until) override;
  Result<std::vector<SeriesPoint>> points(std::chrono::seconds step, WallTime after) override;
  Result<> put_pool(NodeNumber node, WallTime at, const Sample& sample) override;
  Result<Sample> pools(WallTime from) override;
  Result<SeriesCounts> count_events(std::int64_t& after, WallTime from) override;
  Result<Use> used_since(WallTime hour) override;
  Result<std::vector<Event>> fleet_events(WallTime from, std::size_t most) override;
  Result<std::vector<EndedRun>> ended(AgentNumber agent, WallTime from, std::size_t most) override;
  Result<> merge_hours(WallTime before) override;

  Result<Tally> tally() override;
  Result<LastEnds> last_ends(WallTime since, std::size_t most) override;
  Result<std::vector<RunRow>> listed(Listed which, std::size_t most, std::uint32_t text_bytes_max) override;
  Result<std::vector<QueueState>> queues() override;
  Result<std::int64_t> last_event() override;
  Result<> forget_fleet_events(WallTime before) override;

  // Queries of the store; they include the texts if asked.
  Result<std::optional<RunRow>> find(const std::string& id_or_prefix);
  Result<std::vector<RunRow>> list(const Filter& filter);
  Result<Matches> match(const Filter& filter);
  Result<std::vector<RunRow>> with_key(const std::string& agent, const std::string& key);
  Result<std::vector<Event>> events(const std::string& id, std::int64_t after, std::uint32_t most);
  Result<FeedPage> feed(const std::string& cursor, std::uint32_t most);
  Result<Output> output(const std::string& id);
  Result<std::vector<std::string>> messages(const std::string& id, std::uint32_t from, std::size_t bytes_max);
  Result<std::optional<std::int64_t>> place(const std::string& id, std::int64_t most);
  Result<Stats> stats();
  Result<std::vector<Spent>> spent(WallTime since, SpentBy by);
  /// The record contains events and output; the row contains the rest.
  Result<std::vector<std::pair<RunRow, RunRecord>>> dump(RunNumber after, std::uint32_t most);
  Result<std::vector<std::string>> check();

  /// Between these two, all queries see the same moment.
  Result<> begin_read();
  Result<> end_read();

  // The writer calls these where steps and groups begin and end: leases are files, which SQLite does not roll back.
  void begin_group();
  void begin_step();
  /// Writes the rows buffered during the step.
  Result<> flush();
  /// After a rollback of the step: drops the buffered rows and releases the leases that the step took.
  void undo_step();
  /// The same for all steps of the group; or, after a commit, removes the lease files of nodes that are dead now.
  void end_group(bool committed);

  /// Records the clock readings for the next boot if the last record is old.
  Result<> see_clock(const StoreClock& clock);

  /// Whether all nodes belong to this process. A node of another process could die and leave no trace but its free
  /// lock.
  Result<bool> are_all_own();

  /// For tests: as if the process that enrolled the node were gone.
  void drop_lease(NodeNumber node) { own_.erase(node); }

  /// The lock file of a node; its modification time is the last heartbeat.
  [[nodiscard]] static std::string lease_path(const std::string& leases, NodeNumber node);

 private:
  [[nodiscard]] std::string lease_path(NodeNumber node) const { return lease_path(leases_, node); }
  Result<RunRow> read_run(const Query& query);
  Result<std::optional<RunRow>> read_one(Query& query);
  Result<std::vector<RunRow>> read_all(Query& query);
  Result<std::string> agent_name(AgentNumber number);
  Result<std::string> result(RunNumber run);
  Result<std::vector<Event>> events_of(const Run& run, std::int64_t after, std::int64_t most);
  /// How many rows a statement counts, which has no parameters.
  Result<std::uint64_t> count(std::string_view statement);
  Result<> add_texts(std::vector<RunRow>& rows, std::uint32_t text_bytes_max);
  Result<bool> are_few(const std::vector<domain::RunState>& states);
  struct Plan;
  Result<std::optional<Plan>> plan(const Filter& filter);
  Result<RunNumber> newest_before(RunNumber number);
  static void bind(Query& query, const Filter& filter, const Plan& plan);
  static Result<std::vector<BatchRow>> read_batches(Query& query);
  Result<Output> output_of(RunNumber run);
  Result<std::vector<std::string>> messages_of(RunNumber run, std::uint32_t from, std::size_t bytes_max);

  Result<> write_spent();
  Result<> write_events(std::size_t from, std::size_t count);
  void clear_cache();
  Result<os::Fd> take_lease(NodeNumber node) const;
  void give_up_leases(std::size_t from);

  Database& database_;
  std::string leases_;
  std::vector<EventRow> events_;                                 // buffered, to be written together
  std::map<std::pair<std::int64_t, AgentNumber>, Spent> spent_;  // by hour and agent; buffered as well
  /// As read in this transaction: a batch of settlements reads them often.
  std::map<AgentNumber, AgentRow> agents_;
  std::set<SetNumber> steady_;                           // sets without a ramping limit, in this transaction
  std::map<NodeNumber, os::Fd> own_;                     // locks of the nodes of this process
  std::vector<NodeNumber> enrolled_, buried_;            // in this group, which may still be rolled back
  std::size_t enrolled_before_ = 0, buried_before_ = 0;  // before this step
  std::map<AgentNumber, std::string> agent_names_;       // they never change
};

}  // namespace stint::store
