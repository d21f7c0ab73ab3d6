/// The rules of a store on one machine, over rows that it does not keep itself. Each call is one step: it happens
/// wholly or, if the rows fail, must be rolled back by the caller. What it means is said in store.hpp.
#pragma once

#include "store/rows.hpp"

#include <set>

namespace stint::store {

class Ledger {
 public:
  static constexpr std::size_t kBatchMax = 1000;  // runs woken, expired or lost in one step

  Ledger(Rows& rows, const domain::Ambient& ambient) : rows_(rows), ambient_(ambient) {}

  Result<> define(const AgentEntry& entry);
  Result<> resize(const std::string& limit, std::optional<std::uint32_t> capacity);
  Result<> pause(const std::string& limit, std::optional<WallTime> until);
  Result<std::uint64_t> resume(const std::string& limit);
  Result<std::vector<LimitState>> limits();

  Result<WorkerNumber> enrol(const std::string& label);
  Result<Beat> beat(WorkerNumber worker);
  Result<> drain(WorkerNumber worker);
  Result<> leave(WorkerNumber worker);
  Result<std::vector<WorkerState>> workers() { return rows_.worker_states(now()); }

  /// Takes its texts, and settle() those of the settlement.
  Result<Accepted> enqueue(NewRun&& fresh);
  Result<std::vector<std::pair<std::string, domain::RunState>>> cancel(const std::string& id);
  Result<domain::RunState> resolve(const std::string& id, domain::Resolution how);
  Result<> answer(const std::string& id);

  Result<std::vector<Ready>> ready(std::uint32_t most);
  Result<std::vector<Claim>> claim(WorkerNumber worker, const std::string& agent, std::uint32_t most,
                                   const std::string& only);
  Result<std::vector<Claim>> owned(WorkerNumber worker);
  Result<std::optional<domain::RunState>> settle(WorkerNumber worker, Settlement&& settlement);
  Result<bool> mark(WorkerNumber worker, RunNumber run, std::int64_t fence, bool unsafe);
  Result<bool> note(WorkerNumber worker, RunNumber run, std::int64_t fence, std::string cause, std::string data);
  Result<bool> append_output(WorkerNumber worker, RunNumber run, std::int64_t fence, std::string_view text);

  Result<Ticked> tick();
  Result<std::vector<Why>> why(const std::string& id, std::optional<std::int64_t> place);
  Result<std::uint64_t> prune(WallTime before, std::uint32_t most);

  Result<std::vector<AgentEntry>> agents();
  /// False: it is here already.
  Result<bool> load(const RunRecord& record);

 private:
  [[nodiscard]] WallTime now() const { return ambient_.wall_now(); }
  Result<Loan<RunRow>> must_find(const std::string& id);
  Result<Loan<RunRow>> find_owned(WorkerNumber worker, RunNumber run, std::int64_t fence);
  /// Writes the row, and the event of its change. `owner`: who had it before.
  Result<> save(RunRow& row, std::string cause, std::optional<WorkerNumber> owner = {}, std::string data = {});
  Result<> promote(const std::string& session);
  Result<> wake(RunRow& row, std::string cause);
  Result<> stop(RunRow& row, domain::Stop stop);
  Result<domain::RunState> settle_row(RunRow& row, Settlement&& settlement);
  Result<> widen(SetNumber set);
  Result<> pause(const std::string& limit, std::optional<WallTime> until, bool probed);
  /// As the agent sees it. The turn of one that has nothing to start is over. Of what is held above the run in question
  /// only a pause is seen.
  Result<domain::Gate> view(const GateUse& use, AgentNumber agent, const std::set<GateNumber>& held_above);
  Result<std::int64_t> permits(const AgentRow& agent, std::uint32_t most, const std::set<GateNumber>& held_above);
  /// Another living worker keeps it.
  Result<bool> is_kept(const RunRow& row, WorkerNumber from);
  /// Gates that running runs above it hold.
  Result<std::set<GateNumber>> held_above(const RunRow& row);
  Result<SetNumber> set_without(SetNumber set, const std::set<GateNumber>& gates);
  /// What the worker may start now, each with the set that it will hold.
  Result<std::vector<Loan<RunRow>>> first_ones(WorkerNumber worker, const AgentRow& agent, std::uint32_t most);
  Result<std::vector<Loan<RunRow>>> named_one(WorkerNumber worker, const AgentRow& agent, const std::string& id);
  Result<> add_claim(const RunRow& row, std::vector<Claim>& claims);
  Result<> check(const NewRun& fresh, const AgentRow& agent, Loan<const RunRow>& parent);

  Rows& rows_;
  const domain::Ambient& ambient_;
};

}  // namespace stint::store
