/// Rows in memory, which lend what they keep and never fail. Nothing survives the process.
#pragma once

#include "stint/detail/intrusive_list.hpp"
#include "store/line.hpp"
#include "store/rows.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <deque>
#include <set>
#include <unordered_map>

namespace stint::store {

class MemoryRows final : public Rows {
 public:
  static constexpr Duration kLease = std::chrono::seconds(15);

  Result<Loan<const AgentRow>> agent(std::string_view name) override;
  Result<Loan<const AgentRow>> agent(AgentNumber number) override;
  Result<std::vector<Loan<const AgentRow>>> agents() override;
  Result<> put(AgentRow& agent) override;
  Result<> put(AgentNumber agent, const Standstill& standstill) override;
  Result<SetNumber> make_set(const Members& members) override;
  Result<std::vector<SetNumber>> sets_with(GateNumber gate) override;
  Result<GateRow> gate(std::string_view name) override;
  Result<std::vector<GateUse>> gates_of(SetNumber set) override;
  Result<std::vector<GateRow>> ramping(SetNumber set) override;
  Result<std::vector<GateUse>> gates() override;
  Result<Members> members(SetNumber set) override;
  Result<> put(const GateRow& gate) override;
  Result<WorkerNumber> add_worker(const std::string& label, WallTime now) override;
  Result<Loan<const WorkerRow>> worker(WorkerNumber number) override;
  Result<> put(const WorkerRow& worker) override;
  Result<> sweep_workers() override { return {}; }
  Result<> renew(WorkerNumber number, WallTime now) override;
  Result<bool> is_lapsed(WorkerNumber number, WallTime now) override;
  Result<std::vector<WorkerRow>> workers() override;
  Result<std::vector<WorkerState>> worker_states(WallTime now) override;
  Result<Loan<RunRow>> run(RunNumber number) override;
  Result<Loan<RunRow>> run(std::string_view id) override;
  Result<Loan<RunRow>> run_of_key(AgentNumber agent, std::string_view key) override;
  Result<std::vector<Loan<RunRow>>> ready(AgentNumber agent, WorkerNumber by, Moment now, std::size_t most) override;
  Result<std::vector<Loan<RunRow>>> owned(WorkerNumber worker) override;
  Result<Loan<RunRow>> head_of(std::string_view session) override;
  Result<std::vector<RunNumber>> children(RunNumber parent) override;
  Result<std::vector<Loan<RunRow>>> parked_on(std::string_view limit) override;
  Result<std::vector<Loan<RunRow>>> asleep(WallTime until, std::size_t most) override;
  Result<std::vector<Loan<RunRow>>> past_deadline(WallTime wall, std::size_t most) override;
  Result<std::vector<Loan<RunRow>>> past_budget(AwakeTime until, std::size_t most) override;
  Result<std::vector<std::pair<AgentNumber, AwakeTime>>> ready_budgets() override;
  Result<std::vector<Loan<RunRow>>> ready_past_budget(AgentNumber agent, AwakeTime until, std::size_t most) override;
  Result<NextDue> next_due() override;
  Result<bool> has_queued(AgentNumber agent, std::size_t least) override;
  Result<bool> has_ready(AgentNumber agent, WorkerNumber by) override;
  Result<bool> has_ready(AgentNumber agent) override;
  Result<Queue> queue(AgentNumber agent, std::size_t most) override;
  Result<Loan<RunRow>> add(RunRow&& run, std::string input) override;
  Result<> put(const RunRow& run) override;
  Result<std::string> input(RunNumber run) override;
  Result<> put_result(RunNumber run, std::string result) override;
  Result<> add_event(EventRow&& event) override;
  Result<> add_spent(AgentNumber agent, WallTime now, const Use& use) override;
  Result<> add_output(RunNumber run, std::string_view text) override;
  Result<> put_output(RunNumber run, const Output& output) override;
  Result<std::vector<RunNumber>> finished_before(WallTime time, std::size_t most) override;
  Result<> forget(RunNumber run) override;
  Result<std::optional<FamilyRow>> family(std::string_view head) override;
  Result<FamilyRow> make_family(const FamilyUse& sum) override;
  Result<> join(FamilyNumber family, RunNumber run) override;
  Result<std::vector<FamilyRow>> families_of(RunNumber run) override;
  Result<> add_use(FamilyNumber family, const Use& more) override;
  Result<std::optional<WallTime>> pruned_at() override { return pruned_at_; }
  Result<> put_pruned_at(WallTime at) override;

  // Looking, for the store; with texts, as far as they are wanted.
  Result<std::optional<RunRow>> find(const std::string& id_or_prefix);
  [[nodiscard]] std::vector<RunRow> list(const Filter& filter) const;
  [[nodiscard]] std::vector<RunRow> with_key(const std::string& agent, const std::string& key) const;
  Result<std::vector<Event>> events(const std::string& id, std::int64_t after, std::uint32_t most);
  Result<FeedPage> feed(const std::string& cursor, std::uint32_t most);
  Result<Output> output(const std::string& id);
  /// From 1; none if it is not ready.
  Result<std::optional<std::int64_t>> place(const std::string& id, std::int64_t most);
  [[nodiscard]] Stats stats() const;
  [[nodiscard]] std::vector<QueueState> queues() const;
  [[nodiscard]] std::vector<Spent> spent(WallTime since) const;
  /// Events and output are in the record, all else in the row.
  [[nodiscard]] std::vector<std::pair<RunRow, RunRecord>> dump(RunNumber after, std::uint32_t most) const;

 private:
  struct TextHash {
    using is_transparent = void;
    // Not noexcept: so the table keeps what it hashed, and does not do it again when it erases.
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct Agent {
    AgentRow row;
    std::set<std::pair<std::int64_t, RunNumber>> ready;
    std::set<std::pair<AwakeTime, RunNumber>> budgets;  // of the ready
    std::size_t queued = 0;
    std::size_t kept = 0;  // of the ready: those that were submitted for a keeper, alive or not
  };
  struct Gate {
    GateRow row;
    std::int64_t units = 0, runs = 0;
  };
  struct Worker {
    WorkerRow row;
    WallTime lease_until{}, beaten_at{};
    std::vector<RunNumber> runs;  // in their order
  };
  /// Where a run stands because of what its row says: its row may have changed since.
  struct Listing {
    bool queued = false, ready = false, in_session = false;
    std::optional<WorkerNumber> owner;  // with the set it holds
    SetNumber set = 0;
    std::optional<WallTime> asleep, deadline, finished;
    std::optional<AwakeTime> budget, ready_budget;
    std::string parked_on;
  };
  struct KeptEvent {
    std::int64_t number = 0;
    EventRow row;
  };
  struct Entry : stint::detail::Link<Entry> {  // of its session
    explicit Entry(RunRow&& fresh) noexcept : row(std::move(fresh)) {}

    RunRow row;
    Listing listing;
    std::string input, result;
    std::set<RunNumber> children;
    std::vector<FamilyNumber> families;
    std::vector<KeptEvent> events;
    Output output;
  };
  struct Family {
    FamilyRow row;
    std::size_t runs = 0;
  };
  struct EventPlace {
    RunNumber run = 0;
    std::size_t index = 0;  // among its events
  };
  static constexpr RunNumber kFleet = 0;
  static constexpr std::size_t kEventsUsual = 3;  // it comes, is claimed and ends
  template <class Time>
  using Due = std::set<std::pair<Time, RunNumber>>;

  [[nodiscard]] static Listing listing_of(const RunRow& row);
  void list(Entry& entry, Listing next);
  void hold(SetNumber set, int runs);
  [[nodiscard]] Event event_of(const EventRow& row) const;
  [[nodiscard]] const EventRow& event_at(const EventPlace& place) const;
  [[nodiscard]] Entry& entry_of(RunNumber run) const;  // of one that is there
  [[nodiscard]] bool is_kept(const RunRow& row, std::optional<WorkerNumber> from = {}) const;
  [[nodiscard]] bool is_kept(RunNumber run) const { return is_kept(entry_of(run).row); }
  [[nodiscard]] const Members& members_of(SetNumber set) const;
  [[nodiscard]] GateUse use_of(const Gate& gate, std::uint32_t weight) const;
  template <class Time>
  [[nodiscard]] std::vector<Loan<RunRow>> rows_of(const Due<Time>& due, Time until, std::size_t most);
  [[nodiscard]] Entry* find_entry(std::string_view id);
  Result<const Entry*> find_by_part(const std::string& id) const;
  static void add_texts(Run& run, const Entry& entry);

  std::map<AgentNumber, Agent> agents_;
  std::map<std::string, AgentNumber, std::less<>> agent_names_;
  std::map<GateNumber, Gate> gates_;
  std::map<std::string, GateNumber, std::less<>> gate_names_;
  std::vector<Members> sets_;  // set n is at n - 1
  std::map<WorkerNumber, Worker> workers_;
  Line<std::unique_ptr<Entry>> runs_;
  mutable Entry* asked_for_ = nullptr;  // the last one: a step asks for it several times
  // The texts are those of the rows. Flat: that an id is new is seen with one look at memory, among a million as well.
  boost::unordered_flat_map<std::string_view, Entry*> ids_;
  std::map<std::pair<std::string, AgentNumber>, RunNumber> keys_;
  std::map<FamilyNumber, Family> families_;
  std::map<std::string, FamilyNumber, std::less<>> family_heads_;
  std::unordered_map<std::string, stint::detail::List<Entry>, TextHash, std::equal_to<>> sessions_;  // unfinished ones
  std::map<std::string, std::set<RunNumber>, std::less<>> parked_;                                   // by limit
  Due<WallTime> asleep_, deadlines_;
  Due<AwakeTime> budgets_;                               // but not of the ready
  std::deque<std::pair<WallTime, RunNumber>> finished_;  // in their order
  std::map<std::pair<std::chrono::sys_days, AgentNumber>, Spent> spent_;
  std::vector<EventRow> fleet_events_;
  Line<EventPlace> feed_;
  std::int64_t next_event_ = 1;
  RunNumber next_run_ = 1;
  WorkerNumber next_worker_ = 1;
  FamilyNumber next_family_ = 1;
  std::optional<WallTime> pruned_at_;
};

}  // namespace stint::store
