/// Rows in memory. Nothing survives the process.
#pragma once

#include "store/rows.hpp"

#include <set>
#include <unordered_map>

namespace stint::store {

class MemoryRows final : public Rows {
 public:
  static constexpr Duration kLease = std::chrono::seconds(15);

  Result<std::optional<AgentRow>> agent(std::string_view name) override;
  Result<std::optional<AgentRow>> agent(AgentNumber number) override;
  Result<std::vector<AgentRow>> agents() override;
  Result<> put(AgentRow& agent) override;
  Result<SetNumber> make_set(const Members& members) override;
  Result<std::vector<SetNumber>> sets_with(GateNumber gate) override;
  Result<GateRow> gate(std::string_view name) override;
  Result<std::vector<GateUse>> gates_of(SetNumber set) override;
  Result<std::vector<GateRow>> ramping(SetNumber set) override;
  Result<std::vector<GateUse>> gates() override;
  Result<Members> members(SetNumber set) override;
  Result<> put(const GateRow& gate) override;
  Result<WorkerNumber> add_worker(const std::string& label, WallTime now) override;
  Result<std::optional<WorkerRow>> worker(WorkerNumber number) override;
  Result<> put(const WorkerRow& worker) override;
  Result<> renew(WorkerNumber number, WallTime now) override;
  Result<bool> is_lapsed(WorkerNumber number, WallTime now) override;
  Result<std::vector<WorkerRow>> workers() override;
  Result<std::vector<WorkerState>> worker_states(WallTime now) override;
  Result<std::optional<RunRow>> run(RunNumber number) override;
  Result<std::optional<RunRow>> run(std::string_view id) override;
  Result<std::optional<RunRow>> run_of_key(AgentNumber agent, std::string_view key) override;
  Result<std::vector<RunRow>> ready(AgentNumber agent, WorkerNumber by, WallTime now, std::size_t most) override;
  Result<std::vector<RunRow>> owned(WorkerNumber worker) override;
  Result<std::optional<RunRow>> head_of(std::string_view session) override;
  Result<std::vector<RunNumber>> children(RunNumber parent) override;
  Result<std::vector<RunRow>> parked_on(std::string_view limit) override;
  Result<std::vector<RunRow>> asleep(WallTime until, std::size_t most) override;
  Result<std::vector<RunRow>> expiring(WallTime until, std::size_t most) override;
  Result<std::optional<WallTime>> next_due() override;
  Result<bool> has_queued(AgentNumber agent, std::size_t least) override;
  Result<bool> has_ready(AgentNumber agent, WorkerNumber by) override;
  Result<bool> has_ready(AgentNumber agent) override;
  Result<Queue> queue(AgentNumber agent, std::size_t most) override;
  Result<> add(RunRow& run, const std::string& input) override;
  Result<> put(const RunRow& run) override;
  Result<std::string> input(RunNumber run) override;
  Result<> put_result(RunNumber run, const std::string& result) override;
  Result<> add_event(RunNumber run, const Event& event) override;
  Result<> add_spent(AgentNumber agent, WallTime now, const Spending& spending) override;
  Result<> add_output(RunNumber run, std::string_view text) override;
  Result<> put_output(RunNumber run, const Output& output) override;
  Result<std::vector<RunNumber>> finished_before(WallTime time, std::size_t most) override;
  Result<> forget(RunNumber run) override;

  // Looking, for the store.
  Result<std::optional<Run>> find(const std::string& id_or_prefix);
  [[nodiscard]] std::vector<Run> list(const Filter& filter) const;
  Result<std::vector<Event>> events(const std::string& id, std::int64_t after, std::uint32_t most);
  Result<FeedPage> feed(const std::string& cursor, std::uint32_t most);
  Result<Output> output(const std::string& id);
  /// From 1; none if it is not ready.
  Result<std::optional<std::int64_t>> place(const std::string& id, std::int64_t most);
  [[nodiscard]] Stats stats() const;
  [[nodiscard]] std::vector<Spent> spent(WallTime since) const;
  [[nodiscard]] std::vector<RunRecord> dump(RunNumber after, std::uint32_t most) const;

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
  };
  struct Agent {
    AgentRow row;
    std::set<std::pair<std::int64_t, RunNumber>> ready;
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
    std::set<RunNumber> runs;
  };
  struct Entry {
    RunRow row;
    std::string input, result;
    std::set<RunNumber> children;
    std::vector<std::int64_t> events;  // keys of events_
    Output output;
  };

  void list_in(const RunRow& row);
  void take_out(const RunRow& row);
  [[nodiscard]] bool is_kept(RunNumber run, std::optional<WorkerNumber> from = {}) const;
  [[nodiscard]] const Members& members_of(SetNumber set) const;
  [[nodiscard]] GateUse use_of(const Gate& gate, std::uint32_t weight) const;
  [[nodiscard]] std::vector<RunRow> rows_of(const std::set<std::pair<WallTime, RunNumber>>& due, WallTime until,
                                            std::size_t most) const;
  [[nodiscard]] Run whole(const Entry& entry) const;

  std::map<AgentNumber, Agent> agents_;
  std::map<std::string, AgentNumber, std::less<>> agent_names_;
  std::map<GateNumber, Gate> gates_;
  std::map<std::string, GateNumber, std::less<>> gate_names_;
  std::vector<Members> sets_;  // set n is at n - 1
  std::map<WorkerNumber, Worker> workers_;
  std::map<RunNumber, Entry> runs_;
  std::unordered_map<std::string, RunNumber, TextHash, std::equal_to<>> ids_;
  std::map<std::pair<AgentNumber, std::string>, RunNumber> keys_;
  std::map<std::string, std::set<RunNumber>, std::less<>> sessions_;  // unfinished ones
  std::map<std::string, std::set<RunNumber>, std::less<>> parked_;    // by limit
  std::set<std::pair<WallTime, RunNumber>> asleep_, expiring_, finished_;
  std::map<std::pair<std::string, std::string>, Spent> spent_;  // by day and agent
  std::map<std::int64_t, Event> events_;
  std::int64_t next_event_ = 1;
  RunNumber next_run_ = 1;
};

}  // namespace stint::store
