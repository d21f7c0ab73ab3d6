// Invariant: a run is in each index that its row says, and in no other. put() takes it out with its old row and lists
// it with its new one.
#include "store/memory_rows.hpp"

#include "domain/run_id.hpp"
#include "stint/assert.hpp"
#include "store/words.hpp"

#include <algorithm>
#include <tuple>

namespace stint::store {
namespace {

using domain::Hold;
using domain::RunState;
using domain::Stop;

bool can_expire(const Run& run) {
  return run.expires_at && run.stop == Stop::none && !domain::is_finished(run.state) && run.state != RunState::in_doubt;
}

bool is_asleep(const Run& run) { return run.not_before && run.hold != Hold::session && run.hold != Hold::none; }

}  // namespace

// ---- agents, limits, workers ---------------------------------------------------------------------------------------

Result<std::optional<AgentRow>> MemoryRows::agent(std::string_view name) {
  const auto found = agent_names_.find(name);
  return found == agent_names_.end() ? std::optional<AgentRow>() : agents_.at(found->second).row;
}

Result<std::optional<AgentRow>> MemoryRows::agent(AgentNumber number) {
  const auto found = agents_.find(number);
  return found == agents_.end() ? std::optional<AgentRow>() : found->second.row;
}

Result<std::vector<AgentRow>> MemoryRows::agents() {
  std::vector<AgentRow> found;
  for (const auto& [name, number] : agent_names_) found.push_back(agents_.at(number).row);
  return found;
}

Result<> MemoryRows::put(AgentRow& agent) {
  if (agent.number == 0) agent.number = std::ssize(agents_) + 1;
  agent_names_[agent.entry.name] = agent.number;
  agents_[agent.number].row = agent;
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
  const WorkerNumber number = std::ssize(workers_) + 1;
  Worker& worker = workers_[number];
  worker.row.number = number;
  worker.row.label = label;
  STINT_CHECK(renew(number, now));
  return number;
}

Result<std::optional<WorkerRow>> MemoryRows::worker(WorkerNumber number) {
  const auto found = workers_.find(number);
  return found == workers_.end() ? std::optional<WorkerRow>() : found->second.row;
}

Result<> MemoryRows::put(const WorkerRow& worker) {
  workers_.at(worker.number).row = worker;
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

void MemoryRows::take_out(const RunRow& row) {
  const Run& run = row.run;
  if (run.state == RunState::queued) {
    --agents_.at(row.agent).queued;
    if (run.hold == Hold::none) {
      agents_.at(row.agent).ready.erase({row.rank, run.number});
      agents_.at(row.agent).kept -= row.kept_for ? 1U : 0U;
    }
  }
  if (run.state == RunState::running) {
    workers_.at(*run.worker).runs.erase(run.number);
    for (const auto& [number, weight] : members_of(row.set)) {
      gates_.at(number).units -= weight;
      --gates_.at(number).runs;
    }
  }
  if (is_asleep(run)) asleep_.erase({*run.not_before, run.number});
  if (can_expire(run)) expiring_.erase({*run.expires_at, run.number});
  if (run.finished_at) finished_.erase({*run.finished_at, run.number});
  if (run.state == RunState::parked) parked_[row.parked_on].erase(run.number);
  if (!run.session.empty() && !domain::is_finished(run.state)) {
    const auto session = sessions_.find(run.session);
    session->second.erase(run.number);
    if (session->second.empty()) sessions_.erase(session);
  }
}

void MemoryRows::list_in(const RunRow& row) {
  const Run& run = row.run;
  if (run.state == RunState::queued) {
    ++agents_.at(row.agent).queued;
    if (run.hold == Hold::none) {
      agents_.at(row.agent).ready.insert({row.rank, run.number});
      agents_.at(row.agent).kept += row.kept_for ? 1U : 0U;
    }
  }
  if (run.state == RunState::running) {
    workers_.at(*run.worker).runs.insert(run.number);
    for (const auto& [number, weight] : members_of(row.set)) {
      gates_.at(number).units += weight;
      ++gates_.at(number).runs;
    }
  }
  if (is_asleep(run)) asleep_.insert({*run.not_before, run.number});
  if (can_expire(run)) expiring_.insert({*run.expires_at, run.number});
  if (run.finished_at) finished_.insert({*run.finished_at, run.number});
  if (run.state == RunState::parked) parked_[row.parked_on].insert(run.number);
  if (!run.session.empty() && !domain::is_finished(run.state)) sessions_[run.session].insert(run.number);
}

Result<std::optional<RunRow>> MemoryRows::run(RunNumber number) {
  const auto found = runs_.find(number);
  return found == runs_.end() ? std::optional<RunRow>() : found->second.row;
}

Result<std::optional<RunRow>> MemoryRows::run(std::string_view id) {
  const auto found = ids_.find(id);
  return found == ids_.end() ? std::optional<RunRow>() : runs_.at(found->second).row;
}

Result<std::optional<RunRow>> MemoryRows::run_of_key(AgentNumber agent, std::string_view key) {
  const auto found = keys_.find({agent, std::string(key)});
  return found == keys_.end() ? std::optional<RunRow>() : runs_.at(found->second).row;
}

bool MemoryRows::is_kept(RunNumber run, std::optional<WorkerNumber> from) const {
  const std::optional<WorkerNumber> keeper = runs_.at(run).row.kept_for;
  if (!keeper || keeper == from) return false;
  const auto found = workers_.find(*keeper);
  return found != workers_.end() && found->second.row.state != WorkerRow::State::dead;
}

Result<std::vector<RunRow>> MemoryRows::ready(AgentNumber agent, WorkerNumber by, WallTime now, std::size_t most) {
  std::vector<RunRow> found;
  for (const auto& [rank, number] : agents_.at(agent).ready) {
    if (found.size() >= most) break;
    const RunRow& row = runs_.at(number).row;
    const bool expired = row.run.expires_at && *row.run.expires_at <= now;
    if (!expired && !is_kept(number, by)) found.push_back(row);
  }
  return found;
}

Result<std::vector<RunRow>> MemoryRows::owned(WorkerNumber worker) {
  std::vector<RunRow> found;
  const auto by = workers_.find(worker);
  if (by == workers_.end()) return found;
  for (const RunNumber number : by->second.runs) found.push_back(runs_.at(number).row);
  return found;
}

Result<std::optional<RunRow>> MemoryRows::head_of(std::string_view session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? std::optional<RunRow>() : runs_.at(*found->second.begin()).row;
}

Result<std::vector<RunNumber>> MemoryRows::children(RunNumber parent) {
  const std::set<RunNumber>& found = runs_.at(parent).children;
  return std::vector<RunNumber>(found.begin(), found.end());
}

Result<std::vector<RunRow>> MemoryRows::parked_on(std::string_view limit) {
  std::vector<RunRow> found;
  const auto parked = parked_.find(limit);
  if (parked == parked_.end()) return found;
  for (const RunNumber number : parked->second) found.push_back(runs_.at(number).row);
  return found;
}

std::vector<RunRow> MemoryRows::rows_of(const std::set<std::pair<WallTime, RunNumber>>& due, WallTime until,
                                        std::size_t most) const {
  std::vector<RunRow> found;
  for (const auto& [when, number] : due) {
    if (when > until || found.size() >= most) break;
    found.push_back(runs_.at(number).row);
  }
  return found;
}

Result<std::vector<RunRow>> MemoryRows::asleep(WallTime until, std::size_t most) {
  return rows_of(asleep_, until, most);
}
Result<std::vector<RunRow>> MemoryRows::expiring(WallTime until, std::size_t most) {
  return rows_of(expiring_, until, most);
}

Result<std::optional<WallTime>> MemoryRows::next_due() {
  std::optional<WallTime> next;
  for (const auto* const due : {&asleep_, &expiring_}) {
    if (!due->empty()) next = std::min(next.value_or(WallTime::max()), due->begin()->first);
  }
  return next;
}

Result<bool> MemoryRows::has_queued(AgentNumber agent, std::size_t least) { return agents_.at(agent).queued >= least; }
Result<bool> MemoryRows::has_ready(AgentNumber agent, WorkerNumber by) {
  return std::ranges::any_of(agents_.at(agent).ready, [&](const auto& run) { return !is_kept(run.second, by); });
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

Result<> MemoryRows::add(RunRow& run, const std::string& input) {
  run.run.number = next_run_++;
  Entry& entry = runs_.try_emplace(runs_.end(), run.run.number)->second;
  entry.row = run;
  entry.input = input;
  ids_.emplace(run.run.id, run.run.number);
  if (!run.run.key.empty()) keys_.emplace(std::pair(run.agent, run.run.key), run.run.number);
  if (run.parent != 0) runs_.at(run.parent).children.insert(run.run.number);
  list_in(run);
  return {};
}

Result<> MemoryRows::put(const RunRow& run) {
  RunRow& row = runs_.at(run.run.number).row;
  take_out(row);
  row = run;
  list_in(row);
  return {};
}

Result<std::string> MemoryRows::input(RunNumber run) { return runs_.at(run).input; }

Result<> MemoryRows::put_result(RunNumber run, const std::string& result) {
  runs_.at(run).result = result;
  return {};
}

Result<> MemoryRows::add_event(RunNumber run, const Event& event) {
  if (run != 0) {
    std::vector<std::int64_t>& events = runs_.at(run).events;
    STINT_ASSERT(event.seq == std::ssize(events) + 1);  // without gaps, and none twice
    events.push_back(next_event_);
  }
  events_.emplace_hint(events_.end(), next_event_, event);
  ++next_event_;
  return {};
}

Result<> MemoryRows::add_spent(AgentNumber agent, WallTime now, const Spending& spending) {
  Spent& spent = spent_[{day_of(now), agents_.at(agent).row.entry.name}];
  ++spent.runs;
  spent.tokens += spending.tokens;
  spent.money_micros += spending.money_micros;
  return {};
}

Result<> MemoryRows::add_output(RunNumber run, std::string_view text) {
  Output& output = runs_.at(run).output;
  output.bytes += text.size();
  const std::size_t room = std::min(kOutputHeadMax - output.head.size(), text.size());
  output.head += text.substr(0, room);
  output.tail += text.substr(room);
  if (output.tail.size() > kOutputTailMax) output.tail.erase(0, output.tail.size() - kOutputTailMax);
  return {};
}

Result<> MemoryRows::put_output(RunNumber run, const Output& output) {
  runs_.at(run).output = output;
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
  const Entry& entry = runs_.at(run);
  take_out(entry.row);
  for (const std::int64_t event : entry.events) events_.erase(event);
  const auto parent = runs_.find(entry.row.parent);
  if (parent != runs_.end()) parent->second.children.erase(run);
  if (!entry.row.run.key.empty()) keys_.erase({entry.row.agent, entry.row.run.key});
  ids_.erase(entry.row.run.id);
  runs_.erase(run);
  return {};
}

// ---- looking -------------------------------------------------------------------------------------------------------

Run MemoryRows::whole(const Entry& entry) const {
  Run run = entry.row.run;
  run.input = entry.input;
  run.result = entry.result;
  return run;
}

Result<std::optional<Run>> MemoryRows::find(const std::string& id) {
  const auto whole_id = ids_.find(id);
  if (whole_id != ids_.end()) return whole(runs_.at(whole_id->second));
  if (id.empty() || id.size() >= domain::kRunIdLength) return std::nullopt;
  std::optional<RunNumber> found;  // a person has written a part of it: that is rare enough to look at all of them
  for (const auto& [each, number] : ids_) {
    if (!each.starts_with(id)) continue;
    if (found) return fail(Errc::invalid, "more than one run begins with '" + id + "'");
    found = number;
  }
  if (!found) return std::nullopt;
  return whole(runs_.at(*found));
}

std::vector<Run> MemoryRows::list(const Filter& filter) const {
  std::vector<Run> found;
  const auto parent = ids_.find(filter.parent);
  if (!filter.parent.empty() && parent == ids_.end()) return found;
  for (auto entry = filter.before > 0 ? runs_.lower_bound(filter.before) : runs_.end();
       entry != runs_.begin() && found.size() < filter.most;) {
    const Entry& each = (--entry)->second;
    const RunRow& row = each.row;
    const Run& run = row.run;
    if (!filter.states.empty() && std::ranges::find(filter.states, run.state) == filter.states.end()) continue;
    if (!filter.parent.empty() && row.parent != parent->second) continue;
    if (!filter.agent.empty() && run.agent != filter.agent) continue;
    if (!filter.session.empty() && run.session != filter.session) continue;
    found.push_back(filter.texts ? whole(each) : run);
  }
  return found;
}

Result<std::vector<Event>> MemoryRows::events(const std::string& id, std::int64_t after, std::uint32_t most) {
  const auto found = ids_.find(id);
  if (found == ids_.end()) return fail(no_such_run(id));
  const std::vector<std::int64_t>& keys = runs_.at(found->second).events;
  std::vector<Event> page;
  for (auto i = static_cast<std::size_t>(std::max<std::int64_t>(after, 0)); i < keys.size(); ++i) {
    if (page.size() >= most) break;
    page.push_back(events_.at(keys[i]));
  }
  return page;
}

Result<FeedPage> MemoryRows::feed(const std::string& cursor, std::uint32_t most) {
  if (cursor == kFeedNow) return FeedPage{{}, std::to_string(next_event_ - 1)};
  STINT_TRY(const std::int64_t after, read_cursor(cursor));
  FeedPage page;
  page.cursor = std::to_string(after);
  for (auto event = events_.upper_bound(after); event != events_.end() && page.events.size() < most; ++event) {
    page.cursor = std::to_string(event->first);
    page.events.push_back(event->second);
    page.events.back().cursor = page.cursor;
  }
  return page;
}

Result<Output> MemoryRows::output(const std::string& id) {
  const auto found = ids_.find(id);
  if (found == ids_.end()) return fail(no_such_run(id));
  return runs_.at(found->second).output;
}

Result<std::optional<std::int64_t>> MemoryRows::place(const std::string& id, std::int64_t most) {
  const auto found = ids_.find(id);
  if (found == ids_.end()) return fail(no_such_run(id));
  const RunRow& row = runs_.at(found->second).row;
  const auto& ready = agents_.at(row.agent).ready;
  std::int64_t place = 1;
  for (const auto& [rank, number] : ready) {
    if (number == row.run.number || place >= most) return place;
    if (!is_kept(number)) ++place;
  }
  return std::nullopt;
}

Stats MemoryRows::stats() const {
  Stats stats;
  for (const auto& [number, entry] : runs_) ++stats.runs[entry.row.run.state];
  for (const auto& [number, agent] : agents_) {
    for (const auto& [rank, run] : agent.ready) stats.ready += is_kept(run) ? 0U : 1U;
  }
  for (const auto& [number, worker] : workers_) {
    stats.workers += worker.row.state != WorkerRow::State::dead ? 1U : 0U;
  }
  stats.events = events_.size();
  return stats;
}

std::vector<Spent> MemoryRows::spent(WallTime since) const {
  std::vector<Spent> found;
  for (auto at = spent_.lower_bound({day_of(since), {}}); at != spent_.end(); ++at) {
    found.push_back(at->second);
    std::tie(found.back().day, found.back().agent) = at->first;
  }
  return found;
}

std::vector<RunRecord> MemoryRows::dump(RunNumber after, std::uint32_t most) const {
  std::vector<RunRecord> records;
  for (auto at = runs_.upper_bound(after); at != runs_.end() && records.size() < most; ++at) {
    const Entry& entry = at->second;
    RunRecord record;
    record.run = whole(entry);
    record.rank = entry.row.rank;
    record.budget = entry.row.budget;
    record.budget_left = entry.row.budget_left;
    record.budget_until = entry.row.budget_until;
    record.parked_on = entry.row.parked_on;
    for (const std::int64_t event : entry.events) record.events.push_back(events_.at(event));
    record.output = entry.output;
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace stint::store
