// Invariants
// 1. A run is in each index that its row said when it was put, and in no other: its entry keeps that as its listing.
//    The row itself is lent out, and changed in place.
// 2. A row's number, id, agent, session, parent, key, rank and keeper never change.
#include "store/memory_rows.hpp"

#include "stint/assert.hpp"

#include <algorithm>

namespace stint::store {
namespace {

using domain::Hold;
using domain::RunState;
using domain::Stop;

bool can_expire(const Run& run) {
  return run.stop == Stop::none && !domain::is_finished(run.state) && run.state != RunState::in_doubt;
}

bool is_asleep(const Run& run) { return run.not_before && run.hold != Hold::session && run.hold != Hold::none; }

/// What comes is mostly the last.
template <class Sorted>
void add_to(Sorted& sorted, const typename Sorted::value_type& item) {
  const bool last = sorted.empty() || sorted.back() < item;
  sorted.insert(last ? sorted.end() : std::ranges::upper_bound(sorted, item), item);
}
template <class Sorted>
void take_from(Sorted& sorted, const typename Sorted::value_type& item) {
  const auto found = std::ranges::lower_bound(sorted, item);
  STINT_ASSERT(found != sorted.end() && *found == item);
  sorted.erase(found);
}

template <class Due, class Time>
void move_in(Due& due, std::optional<Time> from, std::optional<Time> to, RunNumber run) {
  if (from == to) return;
  if (from) due.erase(due.find({*from, run}));
  if (to) due.emplace_hint(due.end(), *to, run);  // times mostly rise
}

}  // namespace

// ---- agents, limits, workers ---------------------------------------------------------------------------------------

Result<Loan<const AgentRow>> MemoryRows::agent(std::string_view name) {
  const auto found = agent_names_.find(name);
  return found == agent_names_.end() ? Loan<const AgentRow>() : lend(agents_.at(found->second).row);
}

Result<Loan<const AgentRow>> MemoryRows::agent(AgentNumber number) {
  const auto found = agents_.find(number);
  return found == agents_.end() ? Loan<const AgentRow>() : lend(found->second.row);
}

Result<std::vector<Loan<const AgentRow>>> MemoryRows::agents() {
  std::vector<Loan<const AgentRow>> found;
  found.reserve(agents_.size());
  for (const auto& [name, number] : agent_names_) found.push_back(lend(agents_.at(number).row));
  return found;
}

Result<> MemoryRows::put(AgentRow& agent) {
  if (agent.number == 0) agent.number = std::ssize(agents_) + 1;
  agent_names_[agent.entry.name] = agent.number;
  agents_[agent.number].row = agent;
  return {};
}

Result<> MemoryRows::put(AgentNumber agent, const Standstill& standstill) {
  agents_.at(agent).row.standstill = standstill;
  return {};
}

Result<SetNumber> MemoryRows::make_set(const Members& members) {
  sets_.push_back(members);
  return std::ssize(sets_);
}

Result<std::vector<SetNumber>> MemoryRows::sets_with(GateNumber gate) {
  std::vector<SetNumber> found;
  for (SetNumber set = 1; set <= std::ssize(sets_); ++set) {
    const Members& members = members_of(set);
    if (std::ranges::find(members, gate, &Members::value_type::first) != members.end()) found.push_back(set);
  }
  return found;
}

Result<GateRow> MemoryRows::gate(std::string_view name) {
  const auto found = gate_names_.find(name);
  if (found != gate_names_.end()) return gates_.at(found->second).row;
  GateRow fresh;
  fresh.number = std::ssize(gates_) + 1;
  fresh.name = name;
  gate_names_.emplace(fresh.name, fresh.number);
  gates_[fresh.number].row = fresh;
  return fresh;
}

GateUse MemoryRows::use_of(const Gate& gate, std::uint32_t weight) const {
  GateUse use;
  use.gate = gate.row;
  use.weight = weight;
  use.units = gate.units;
  use.runs = gate.runs;
  const auto uses_it = [&](const auto& agent) {
    const Members& members = members_of(agent.second.row.set);
    return std::ranges::find(members, gate.row.number, &Members::value_type::first) != members.end();
  };
  use.shared = std::ranges::count_if(agents_, uses_it) > 1;
  return use;
}

Result<std::vector<GateUse>> MemoryRows::gates_of(SetNumber set) {
  std::vector<GateUse> uses;
  for (const auto& [number, weight] : members_of(set)) {
    uses.push_back(use_of(gates_.at(number), weight));
  }
  return uses;
}

Result<std::vector<GateRow>> MemoryRows::ramping(SetNumber set) {
  std::vector<GateRow> found;
  for (const auto& [number, weight] : members_of(set)) {
    const GateRow& row = gates_.at(number).row;
    if (row.ramp) found.push_back(row);
  }
  return found;
}

Result<std::vector<GateUse>> MemoryRows::gates() {
  std::vector<GateUse> uses;
  for (const auto& [name, number] : gate_names_) uses.push_back(use_of(gates_.at(number), 1));
  return uses;
}

Result<Members> MemoryRows::members(SetNumber set) { return members_of(set); }

const Members& MemoryRows::members_of(SetNumber set) const {
  static const Members kNone;
  return set == 0 ? kNone : sets_.at(static_cast<std::size_t>(set - 1));
}

Result<> MemoryRows::put(const GateRow& gate) {
  gates_.at(gate.number).row = gate;
  return {};
}

Result<WorkerNumber> MemoryRows::add_worker(const std::string& label, WallTime now) {
  const WorkerNumber number = next_worker_++;
  Worker& worker = workers_[number];
  worker.row.number = number;
  worker.row.label = label;
  STINT_CHECK(renew(number, now));
  return number;
}

Result<Loan<const WorkerRow>> MemoryRows::worker(WorkerNumber number) {
  const auto found = workers_.find(number);
  return found == workers_.end() ? Loan<const WorkerRow>() : lend(found->second.row);
}

Result<> MemoryRows::put(const WorkerRow& worker) {
  if (worker.state == WorkerRow::State::dead) {
    workers_.erase(worker.number);
  } else {
    workers_.at(worker.number).row = worker;
  }
  return {};
}

Result<> MemoryRows::renew(WorkerNumber number, WallTime now) {
  Worker& worker = workers_.at(number);
  worker.lease_until = now + std::chrono::ceil<std::chrono::milliseconds>(kLease);
  worker.beaten_at = now;
  return {};
}

Result<bool> MemoryRows::is_lapsed(WorkerNumber number, WallTime now) { return workers_.at(number).lease_until < now; }

Result<std::vector<WorkerRow>> MemoryRows::workers() {
  std::vector<WorkerRow> found;
  for (const auto& [number, worker] : workers_) {
    if (worker.row.state != WorkerRow::State::dead) found.push_back(worker.row);
  }
  return found;
}

Result<std::vector<WorkerState>> MemoryRows::worker_states(WallTime now) {
  std::vector<WorkerState> found;
  for (const auto& [number, worker] : workers_) {
    if (worker.row.state == WorkerRow::State::dead) continue;
    found.push_back({.number = number,
                     .label = worker.row.label,
                     .state = std::string(to_string(worker.row.state)),
                     .last_beat_ago = std::max<Duration>(now - worker.beaten_at, Duration::zero()),
                     .runs = worker.runs.size()});
  }
  return found;
}

// ---- runs ----------------------------------------------------------------------------------------------------------

MemoryRows::Listing MemoryRows::listing_of(const RunRow& row) {
  const Run& run = row.run;
  Listing listing;
  listing.queued = run.state == RunState::queued;
  listing.ready = listing.queued && run.hold == Hold::none;
  listing.in_session = !run.session.empty() && !domain::is_finished(run.state);
  if (run.state == RunState::running) {
    listing.owner = run.worker;
    listing.set = row.set;
  }
  if (is_asleep(run)) listing.asleep = run.not_before;
  if (can_expire(run)) {
    listing.deadline = run.deadline;
    (row.by_agents_clock ? listing.ready_budget : listing.budget) = row.budget_until;
  }
  listing.finished = run.finished_at;
  if (run.state == RunState::parked) listing.parked_on = row.parked_on;
  return listing;
}

/// Only where it stood elsewhere before.
void MemoryRows::list(Entry& entry, Listing next) {
  const RunRow& row = entry.row;
  const RunNumber number = row.run.number;
  const Listing& last = entry.listing;
  Agent& agent = agents_.at(row.agent);
  if (last.queued != next.queued) agent.queued += next.queued ? 1 : -1;
  if (last.ready && !next.ready) agent.ready.erase(agent.ready.find({row.rank, number}));
  if (!last.ready && next.ready) agent.ready.emplace_hint(agent.ready.end(), row.rank, number);
  if (last.ready != next.ready && row.kept_for) agent.kept += next.ready ? 1 : -1;
  if (last.owner != next.owner || last.set != next.set) {
    if (last.owner) take_from(workers_.at(*last.owner).runs, number);
    if (next.owner) add_to(workers_.at(*next.owner).runs, number);
    hold(last.set, -1);
    hold(next.set, 1);
  }
  move_in(asleep_, last.asleep, next.asleep, number);
  move_in(deadlines_, last.deadline, next.deadline, number);
  move_in(budgets_, last.budget, next.budget, number);
  move_in(agent.budgets, last.ready_budget, next.ready_budget, number);
  if (last.finished != next.finished) {
    if (last.finished) take_from(finished_, {*last.finished, number});
    if (next.finished) add_to(finished_, {*next.finished, number});
  }
  if (last.parked_on != next.parked_on) {
    if (!last.parked_on.empty()) parked_[last.parked_on].erase(number);
    if (!next.parked_on.empty()) parked_[next.parked_on].insert(number);
  }
  if (!last.in_session && next.in_session) sessions_[row.run.session].push_back(entry);  // only when it is new
  if (last.in_session && !next.in_session) {
    const auto session = sessions_.find(row.run.session);
    entry.unlink();
    if (session->second.empty()) sessions_.erase(session);
  }
  entry.listing = std::move(next);
}

void MemoryRows::hold(SetNumber set, int runs) {
  for (const auto& [number, weight] : members_of(set)) {
    Gate& gate = gates_.at(number);
    gate.units += std::int64_t{weight} * runs;
    gate.runs += runs;
  }
}

MemoryRows::Entry& MemoryRows::entry_of(RunNumber run) const {
  if (asked_for_ != nullptr && asked_for_->row.run.number == run) return *asked_for_;
  const auto* const found = runs_.find(run);
  STINT_ASSERT(found != nullptr);
  asked_for_ = found->get();
  return *asked_for_;
}

MemoryRows::Entry* MemoryRows::find_entry(std::string_view id) {
  const auto found = ids_.find(id);
  return found == ids_.end() ? nullptr : found->second;
}

Result<Loan<RunRow>> MemoryRows::run(RunNumber number) {
  const auto* const found = runs_.find(number);
  return found == nullptr ? Loan<RunRow>() : lend((*found)->row);
}

Result<Loan<RunRow>> MemoryRows::run(std::string_view id) {
  Entry* const found = find_entry(id);
  return found == nullptr ? Loan<RunRow>() : lend(found->row);
}

Result<Loan<RunRow>> MemoryRows::run_of_key(AgentNumber agent, std::string_view key) {
  const auto found = keys_.find({std::string(key), agent});
  return found == keys_.end() ? Loan<RunRow>() : lend(entry_of(found->second).row);
}

bool MemoryRows::is_kept(const RunRow& row, std::optional<WorkerNumber> from) const {
  if (!row.kept_for || row.kept_for == from) return false;
  const auto found = workers_.find(*row.kept_for);
  return found != workers_.end() && found->second.row.state != WorkerRow::State::dead;
}

Result<std::vector<Loan<RunRow>>> MemoryRows::ready(AgentNumber agent, WorkerNumber by, Moment now, std::size_t most) {
  std::vector<Loan<RunRow>> found;
  const auto& ready = agents_.at(agent).ready;
  found.reserve(std::min(most, ready.size()));
  for (const auto& [rank, number] : ready) {
    if (found.size() >= most) break;
    RunRow& row = entry_of(number).row;
    const bool expired =
        (row.run.deadline && *row.run.deadline <= now.wall) || (row.budget_until && *row.budget_until <= now.drawn);
    if (!expired && !is_kept(row, by)) found.push_back(lend(row));
  }
  return found;
}

Result<std::vector<Loan<RunRow>>> MemoryRows::owned(WorkerNumber worker) {
  std::vector<Loan<RunRow>> found;
  const auto by = workers_.find(worker);
  if (by == workers_.end()) return found;
  for (const RunNumber number : by->second.runs) found.push_back(lend(entry_of(number).row));
  return found;
}

Result<Loan<RunRow>> MemoryRows::head_of(std::string_view session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? Loan<RunRow>() : lend(found->second.front().row);
}

Result<std::vector<RunNumber>> MemoryRows::children(RunNumber parent) {
  const std::set<RunNumber>& found = entry_of(parent).children;
  return std::vector<RunNumber>(found.begin(), found.end());
}

Result<std::vector<Loan<RunRow>>> MemoryRows::parked_on(std::string_view limit) {
  std::vector<Loan<RunRow>> found;
  const auto parked = parked_.find(limit);
  if (parked == parked_.end()) return found;
  for (const RunNumber number : parked->second) found.push_back(lend(entry_of(number).row));
  return found;
}

template <class Time>
std::vector<Loan<RunRow>> MemoryRows::rows_of(const Due<Time>& due, Time until, std::size_t most) {
  std::vector<Loan<RunRow>> found;
  for (const auto& [when, number] : due) {
    if (when > until || found.size() >= most) break;
    found.push_back(lend(entry_of(number).row));
  }
  return found;
}

Result<std::vector<Loan<RunRow>>> MemoryRows::asleep(WallTime until, std::size_t most) {
  return rows_of(asleep_, until, most);
}
Result<std::vector<Loan<RunRow>>> MemoryRows::past_deadline(WallTime wall, std::size_t most) {
  return rows_of(deadlines_, wall, most);
}
Result<std::vector<Loan<RunRow>>> MemoryRows::past_budget(AwakeTime until, std::size_t most) {
  return rows_of(budgets_, until, most);
}
Result<std::vector<Loan<RunRow>>> MemoryRows::ready_past_budget(AgentNumber agent, AwakeTime until, std::size_t most) {
  return rows_of(agents_.at(agent).budgets, until, most);
}

Result<std::vector<std::pair<AgentNumber, AwakeTime>>> MemoryRows::ready_budgets() {
  std::vector<std::pair<AgentNumber, AwakeTime>> found;
  for (const auto& [number, agent] : agents_) {
    if (!agent.budgets.empty()) found.emplace_back(number, agent.budgets.begin()->first);
  }
  return found;
}

Result<NextDue> MemoryRows::next_due() {
  NextDue next;
  if (!asleep_.empty()) next.asleep = asleep_.begin()->first;
  if (!deadlines_.empty()) next.deadline = deadlines_.begin()->first;
  if (!budgets_.empty()) next.budget = budgets_.begin()->first;
  return next;
}

Result<bool> MemoryRows::has_queued(AgentNumber agent, std::size_t least) { return agents_.at(agent).queued >= least; }
Result<bool> MemoryRows::has_ready(AgentNumber agent, WorkerNumber by) {
  const Agent& of = agents_.at(agent);
  if (of.kept == 0) return !of.ready.empty();  // nearly always
  return std::ranges::any_of(of.ready, [&](const auto& run) { return !is_kept(entry_of(run.second).row, by); });
}
Result<bool> MemoryRows::has_ready(AgentNumber agent) { return !agents_.at(agent).ready.empty(); }

Result<Queue> MemoryRows::queue(AgentNumber agent, std::size_t most) {
  const auto& ready = agents_.at(agent).ready;
  Queue queue;
  if (agents_.at(agent).kept == 0 && !ready.empty()) {  // nearly always
    return Queue{.runs = static_cast<std::int64_t>(std::min(ready.size(), most)), .rank = ready.begin()->first};
  }
  for (const auto& [rank, number] : ready) {
    if (queue.runs >= static_cast<std::int64_t>(most)) break;
    if (is_kept(number)) continue;
    if (queue.runs == 0) queue.rank = rank;
    ++queue.runs;
  }
  return queue;
}

Result<Loan<RunRow>> MemoryRows::add(RunRow&& run, std::string input) {
  const RunNumber number = run.run.number = next_run_++;
  Entry& entry = *runs_.add(number, std::make_unique<Entry>(std::move(run)));
  RunRow& row = entry.row;
  entry.input = std::move(input);
  entry.events.reserve(kEventsUsual);
  ids_.emplace(row.run.id, &entry);
  if (!row.run.key.empty()) keys_.emplace(std::pair(row.run.key, row.agent), number);
  if (row.parent != 0) entry_of(row.parent).children.insert(number);
  list(entry, listing_of(row));
  return lend(row);
}

Result<> MemoryRows::put(const RunRow& run) {
  Entry& entry = entry_of(run.run.number);
  STINT_ASSERT(&run == &entry.row);
  list(entry, listing_of(run));
  return {};
}

Result<std::string> MemoryRows::input(RunNumber run) { return entry_of(run).input; }

Result<> MemoryRows::put_result(RunNumber run, std::string result) {
  entry_of(run).result = std::move(result);
  return {};
}

Result<> MemoryRows::add_event(EventRow&& event) {
  const std::int64_t number = next_event_++;
  if (event.run == kFleet) {
    feed_.add(number, {kFleet, fleet_events_.size()});
    fleet_events_.push_back(std::move(event));
    return {};
  }
  std::vector<KeptEvent>& events = entry_of(event.run).events;
  STINT_ASSERT(event.seq == std::ssize(events) + 1);  // without gaps, and none twice
  feed_.add(number, {event.run, events.size()});
  events.emplace_back(number, std::move(event));
  return {};
}

Result<> MemoryRows::add_spent(AgentNumber agent, WallTime now, const Use& use) {
  Spent& spent = spent_[{std::chrono::floor<std::chrono::days>(now), agent}];
  ++spent.runs;
  spent.tokens += use.tokens;
  spent.money_micros += use.money_micros;
  return {};
}

Result<> MemoryRows::add_output(RunNumber run, std::string_view text) {
  Output& output = entry_of(run).output;
  output.bytes += text.size();
  const std::size_t room = std::min(kOutputHeadMax - output.head.size(), text.size());
  output.head += text.substr(0, room);
  output.tail += text.substr(room);
  if (output.tail.size() > kOutputTailMax) output.tail.erase(0, output.tail.size() - kOutputTailMax);
  return {};
}

Result<> MemoryRows::put_output(RunNumber run, const Output& output) {
  entry_of(run).output = output;
  return {};
}

Result<std::vector<RunNumber>> MemoryRows::finished_before(WallTime time, std::size_t most) {
  std::vector<RunNumber> found;
  for (const auto& [when, number] : finished_) {
    if (when >= time || found.size() >= most) break;
    found.push_back(number);
  }
  return found;
}

Result<> MemoryRows::forget(RunNumber run) {
  Entry& entry = entry_of(run);
  list(entry, {});
  for (const KeptEvent& event : entry.events) feed_.erase(event.number);
  const auto* const parent = runs_.find(entry.row.parent);
  if (parent != nullptr) (*parent)->children.erase(run);
  if (!entry.row.run.key.empty()) keys_.erase({entry.row.run.key, entry.row.agent});
  for (const FamilyNumber number : entry.families) {
    const auto family = families_.find(number);
    if (--family->second.runs > 0) continue;
    family_heads_.erase(family->second.row.sum.head);
    families_.erase(family);
  }
  ids_.erase(entry.row.run.id);
  asked_for_ = nullptr;
  runs_.erase(run);
  return {};
}

// ---- families ------------------------------------------------------------------------------------------------------

Result<std::optional<FamilyRow>> MemoryRows::family(std::string_view head) {
  const auto found = family_heads_.find(head);
  if (found == family_heads_.end()) return std::nullopt;
  return families_.at(found->second).row;
}

Result<FamilyRow> MemoryRows::make_family(const FamilyUse& sum) {
  const FamilyNumber number = next_family_++;
  family_heads_.emplace(sum.head, number);
  return families_.emplace(number, Family{.row = {.number = number, .sum = sum}}).first->second.row;
}

Result<> MemoryRows::join(FamilyNumber family, RunNumber run) {
  std::vector<FamilyNumber>& joined = entry_of(run).families;
  if (std::ranges::find(joined, family) != joined.end()) return {};
  joined.push_back(family);
  ++families_.at(family).runs;
  return {};
}

Result<std::vector<FamilyRow>> MemoryRows::families_of(RunNumber run) {
  std::vector<FamilyRow> found;
  for (const FamilyNumber number : entry_of(run).families) found.push_back(families_.at(number).row);
  std::ranges::sort(found, {}, [](const FamilyRow& row) { return row.sum.head; });
  return found;
}

Result<> MemoryRows::add_use(FamilyNumber family, const Use& more) {
  Use& used = families_.at(family).row.sum.used;
  used.tokens += more.tokens;
  used.money_micros += more.money_micros;
  return {};
}

Result<> MemoryRows::put_pruned_at(WallTime at) {
  pruned_at_ = at;
  return {};
}

}  // namespace stint::store
