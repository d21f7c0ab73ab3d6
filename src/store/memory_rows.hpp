/// Rows in memory: plain values in standard containers, copied in and out. No call fails, and nothing survives the
/// process. The other stores are compared with this one, so it is written to be obviously right: put() removes the
/// old row from all indexes and enters the new one.
#pragma once

#include "store/rows.hpp"

#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

namespace stint::store {

class MemoryRows final : public Rows {
 public:
  static constexpr Duration kLease = std::chrono::seconds(15);

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
  Result<> sweep_nodes() override { return {}; }
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
  Result<std::optional<WallTime>> pruned_at() override { return pruned_at_; }
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
  Result<std::int64_t> last_event() override { return last_event_; }
  Result<> forget_fleet_events(WallTime before) override;

  // Queries of the store; they include input and result if asked.
  Result<std::optional<RunRow>> find(const std::string& id_or_prefix);
  [[nodiscard]] std::vector<RunRow> list(const Filter& filter) const;
  [[nodiscard]] Matches match(const Filter& filter) const;
  [[nodiscard]] std::vector<RunRow> with_key(const std::string& agent, const std::string& key) const;
  Result<std::vector<Event>> events(const std::string& id, std::int64_t after, std::uint32_t most);
  Result<FeedPage> feed(const std::string& cursor, std::uint32_t most);
  Result<Output> output(const std::string& id);
  Result<std::vector<std::string>> messages(const std::string& id, std::uint32_t from, std::size_t bytes_max);
  /// From 1; none if the run is not ready.
  Result<std::optional<std::int64_t>> place(const std::string& id, std::int64_t most);
  [[nodiscard]] Stats stats() const;
  [[nodiscard]] std::vector<Spent> spent(WallTime since, SpentBy by) const;
  /// The record contains events, families and output; the row contains the rest.
  [[nodiscard]] std::vector<std::pair<RunRow, RunRecord>> dump(RunNumber after, std::uint32_t most) const;

 private:
  struct Node {
    NodeRow row;
    WallTime lease_until{}, beaten_at{};
  };
  struct Entry {
    RunRow row;
    std::string input, result, search;
    std::vector<std::int64_t> events;  // their numbers, by seq
    std::set<FamilyNumber> families;
    Output output;
    std::vector<std::string> messages;
  };
  struct BatchEntry {
    BatchRow row;
    std::vector<std::string> runs;
    std::map<std::uint64_t, BatchFailure> failures;  // by place
  };
  struct Family {
    FamilyRow row;
    std::size_t runs = 0;
  };
  struct IdHash {
    using is_transparent = void;
    /// Not noexcept: libstdc++ then keeps the hash beside each key, instead of hashing the keys of a bucket again.
    std::size_t operator()(std::string_view id) const { return std::hash<std::string_view>()(id); }
  };
  /// Runs by a key, then by their number.
  template <class Key>
  using Index = std::set<std::pair<Key, RunNumber>>;
  using ReadyKey = std::tuple<AgentNumber, std::int64_t, RunNumber>;  // agent, rank, run

  void enter(const RunRow& row);
  void take_out(const RunRow& row);
  /// Calls `edit(index, key)` for each index of kind Index that contains a run with this row.
  template <class Edit>
  void edit_indexes(const RunRow& row, Edit edit);
  [[nodiscard]] const Entry* find_entry(std::string_view id) const;
  [[nodiscard]] static bool matches(const Filter& filter, const Entry& entry, std::optional<RunNumber> parent);
  /// Looks at every id: for people, who type the beginning of one. Fails if several match.
  [[nodiscard]] Result<const Entry*> find_by_prefix(std::string_view prefix) const;
  [[nodiscard]] Result<const Entry*> must_find(const std::string& id) const;
  [[nodiscard]] bool is_kept(std::optional<NodeNumber> keeper, std::optional<NodeNumber> from = {}) const;
  [[nodiscard]] const Members& members_of(SetNumber set) const;
  [[nodiscard]] std::optional<std::uint32_t> weight_in(SetNumber set, LimitNumber limit) const;
  [[nodiscard]] LimitMember member_of(const LimitRow& limit, std::uint32_t weight) const;
  [[nodiscard]] Event event_of(const EventRow& row) const;
  void forget_event(std::int64_t number);
  [[nodiscard]] WallTime waits_since(const Entry& entry) const;
  /// The entries of the index from `key` on while the key matches, in order.
  template <class Key>
  [[nodiscard]] std::vector<RunRow> rows_with(const Index<Key>& index, const Key& key) const;
  template <class Time>
  [[nodiscard]] std::vector<RunRow> rows_until(const Index<Time>& index, Time until, std::size_t most) const;

  std::map<AgentNumber, AgentRow> agents_;
  std::map<std::string, AgentNumber, std::less<>> agent_names_;
  std::map<LimitNumber, LimitRow> limits_;
  std::map<std::string, LimitNumber, std::less<>> limit_names_;
  std::map<SetNumber, Members> sets_;
  std::map<NodeNumber, Node> nodes_;
  std::map<RunNumber, Entry> runs_;
  std::map<std::int64_t, EventRow> events_;  // of all runs and of the fleet, by number
  std::map<FamilyNumber, Family> families_;
  std::map<std::string, FamilyNumber, std::less<>> family_heads_;
  std::map<std::pair<WallTime, AgentNumber>, Spent> spent_;  // by hour
  std::map<std::pair<std::chrono::seconds, WallTime>, SeriesPoint> points_;
  std::map<NodeNumber, std::pair<WallTime, Sample>> pools_;  // the last ones that were put
  std::optional<SeriesHead> series_head_;
  std::optional<WallTime> pruned_at_;
  std::map<BatchNumber, BatchEntry> batches_;

  // Indexes of runs_.
  /// Hashed: ids are random, so that each look-up in a tree of many runs would miss the processor's caches.
  std::unordered_map<std::string, RunNumber, IdHash, std::equal_to<>> ids_;
  std::map<std::pair<std::string, AgentNumber>, RunNumber> keys_;
  std::map<ReadyKey, std::optional<NodeNumber>> ready_;  // with the nodes they are kept for
  std::map<AgentNumber, std::size_t> queued_;            // number of queued runs
  std::map<SetNumber, std::set<RunNumber>> holding_;     // running runs by the set they were claimed with
  Index<NodeNumber> owned_;
  Index<RunNumber> children_;
  Index<std::string> unfinished_;  // by session
  Index<std::string> parked_;      // by limit
  Index<WallTime> asleep_, deadlines_, finished_;
  Index<AwakeTime> budgets_;  // excludes ready runs
  Index<std::pair<AgentNumber, AwakeTime>> ready_budgets_;

  std::int64_t last_event_ = 0, pruned_event_ = 0;  // the newest, and the newest that was deleted
  RunNumber last_run_{};
  NodeNumber last_node_{};
  FamilyNumber last_family_{};
  BatchNumber last_batch_{};
};

}  // namespace stint::store
