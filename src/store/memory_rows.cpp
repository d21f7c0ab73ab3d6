#include "store/memory_rows.hpp"

#include "stint/assert.hpp"
#include "store/search_text.hpp"

#include <algorithm>
#include <limits>

namespace stint::store {
namespace {

using domain::Hold;
using domain::RunState;
using domain::Stop;

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();

bool can_expire(const Run& run) {
  return run.stop == Stop::none && !domain::is_finished(run.state) && run.state != RunState::in_doubt;
}
bool is_asleep(const Run& run) { return run.not_before && run.hold != Hold::session && run.hold != Hold::none; }

}  // namespace

// ---- agents and limits ---------------------------------------------------------------------------------------------

Result<std::optional<AgentRow>> MemoryRows::agent(std::string_view name) {
  const auto found = agent_names_.find(name);
  return found == agent_names_.end() ? std::nullopt : std::optional(agents_.at(found->second));
}

Result<std::optional<AgentRow>> MemoryRows::agent(AgentNumber number) {
  const auto found = agents_.find(number);
  return found == agents_.end() ? std::nullopt : std::optional(found->second);
}

Result<std::vector<AgentRow>> MemoryRows::agents() {
  std::vector<AgentRow> found;
  for (const auto& [name, number] : agent_names_) found.push_back(agents_.at(number));
  return found;
}

Result<> MemoryRows::put(AgentRow& agent) {
  if (agent.number.value == 0) agent.number = AgentNumber{std::ssize(agents_) + 1};
  agent_names_[agent.entry.name] = agent.number;
  agents_[agent.number] = agent;
  return {};
}

Result<> MemoryRows::put(AgentNumber agent, const Standstill& standstill) {
  agents_.at(agent).standstill = standstill;
  return {};
}

Result<SetNumber> MemoryRows::make_set(const Members& members) {
  const SetNumber set{std::ssize(sets_) + 1};
  sets_.emplace(set, members);
  return set;
}

Result<std::vector<SetNumber>> MemoryRows::sets_with(LimitNumber limit) {
  std::vector<SetNumber> found;
  for (const auto& [set, members] : sets_) {
    if (weight_in(set, limit)) found.push_back(set);
  }
  return found;
}

Result<LimitRow> MemoryRows::limit(std::string_view name) {
  const auto found = limit_names_.find(name);
  if (found != limit_names_.end()) return limits_.at(found->second);
  LimitRow fresh;
  fresh.number = LimitNumber{std::ssize(limits_) + 1};
  fresh.name = name;
  limit_names_.emplace(fresh.name, fresh.number);
  limits_.emplace(fresh.number, fresh);
  return fresh;
}

const Members& MemoryRows::members_of(SetNumber set) const {
  static const Members kNone;
  return set.value == 0 ? kNone : sets_.at(set);
}

std::optional<std::uint32_t> MemoryRows::weight_in(SetNumber set, LimitNumber limit) const {
  const Members& members = members_of(set);
  const auto found = std::ranges::find(members, limit, &Members::value_type::first);
  return found == members.end() ? std::nullopt : std::optional(found->second);
}

LimitMember MemoryRows::member_of(const LimitRow& limit, std::uint32_t weight) const {
  LimitMember member{.limit = limit, .weight = weight};
  for (const auto& [set, runs] : holding_) {
    const std::int64_t each = weight_in(set, limit.number).value_or(0);
    if (each == 0) continue;
    member.units += each * std::ssize(runs);
    member.runs += std::ssize(runs);
  }
  const auto uses_it = [&](const auto& agent) { return weight_in(agent.second.set, limit.number).has_value(); };
  member.shared = std::ranges::count_if(agents_, uses_it) > 1;
  return member;
}

Result<std::vector<LimitMember>> MemoryRows::limits_of(SetNumber set) {
  std::vector<LimitMember> found;
  for (const auto& [number, weight] : members_of(set)) found.push_back(member_of(limits_.at(number), weight));
  return found;
}

Result<std::vector<LimitRow>> MemoryRows::ramping(SetNumber set) {
  std::vector<LimitRow> found;
  for (const auto& [number, weight] : members_of(set)) {
    if (limits_.at(number).ramp) found.push_back(limits_.at(number));
  }
  return found;
}

Result<std::vector<LimitMember>> MemoryRows::limits() {
  std::vector<LimitMember> found;
  for (const auto& [name, number] : limit_names_) found.push_back(member_of(limits_.at(number), 1));
  return found;
}

Result<Members> MemoryRows::members(SetNumber set) { return members_of(set); }

Result<> MemoryRows::put(const LimitRow& limit) {
  limits_.at(limit.number) = limit;
  return {};
}

Result<std::vector<LimitHolder>> MemoryRows::holders(LimitNumber limit, std::size_t most) {
  std::vector<std::pair<RunNumber, LimitHolder>> found;
  for (const auto& [set, runs] : holding_) {
    const std::optional<std::uint32_t> weight = weight_in(set, limit);
    if (!weight) continue;
    for (const RunNumber number : runs) {
      const Run& run = runs_.at(number).row.run;
      found.push_back({number, {run.id, run.agent, *weight, run.started_at.value_or(run.created_at)}});
    }
  }
  std::ranges::sort(found, {}, [](const auto& each) { return std::pair(each.second.since, each.first); });
  std::vector<LimitHolder> holders;
  for (auto& [number, holder] : found) {
    if (holders.size() < most) holders.push_back(std::move(holder));
  }
  return holders;
}

Result<std::vector<LimitWaiter>> MemoryRows::waiters(LimitNumber limit, std::size_t most) {
  std::vector<std::tuple<std::int64_t, RunNumber, std::uint32_t>> found;  // rank, run, weight
  for (const auto& [number, agent] : agents_) {
    const std::optional<std::uint32_t> weight = weight_in(agent.set, limit);
    if (!weight) continue;
    std::size_t count = 0;
    for (auto at = ready_.lower_bound({number, kLowest, RunNumber{}}); at != ready_.end() && count < most;
         ++at, ++count) {
      const auto& [of, rank, run] = at->first;
      if (of != number) break;
      found.emplace_back(rank, run, *weight);
    }
  }
  std::ranges::sort(found);
  std::vector<LimitWaiter> line;
  for (const auto& [rank, number, weight] : found) {
    if (line.size() >= most) break;
    const Entry& entry = runs_.at(number);
    line.push_back({entry.row.run.id, entry.row.run.agent, weight, waits_since(entry)});
  }
  return line;
}

Result<std::uint64_t> MemoryRows::count_waiters(LimitNumber limit, std::optional<LinePlace> before, std::size_t most) {
  std::uint64_t count = 0;
  for (const auto& [number, agent] : agents_) {
    if (!weight_in(agent.set, limit)) continue;
    for (auto at = ready_.lower_bound({number, kLowest, RunNumber{}}); at != ready_.end() && count < most;
         ++at, ++count) {
      const auto& [of, rank, run] = at->first;
      if (of != number || (before && LinePlace{rank, run} >= *before)) break;
    }
  }
  return count;
}

// ---- nodes ---------------------------------------------------------------------------------------------------------

Result<NodeNumber> MemoryRows::add_node(const std::string& label, NodeKind kind, WallTime now) {
  const NodeNumber number{++last_node_.value};
  nodes_[number].row = {.number = number, .label = label, .kind = kind};
  STINT_CHECK(renew(number, now));
  return number;
}

Result<std::optional<NodeRow>> MemoryRows::node(NodeNumber number) {
  const auto found = nodes_.find(number);
  return found == nodes_.end() ? std::nullopt : std::optional(found->second.row);
}

Result<> MemoryRows::put(const NodeRow& node) {
  if (node.state == NodeRow::State::dead) {
    nodes_.erase(node.number);
  } else {
    nodes_.at(node.number).row = node;
  }
  return {};
}

Result<> MemoryRows::renew(NodeNumber number, WallTime now) {
  Node& node = nodes_.at(number);
  node.lease_until = now + std::chrono::ceil<std::chrono::milliseconds>(kLease);
  node.beaten_at = now;
  return {};
}

Result<bool> MemoryRows::is_lapsed(NodeNumber number, WallTime now) { return nodes_.at(number).lease_until < now; }

Result<std::vector<NodeRow>> MemoryRows::nodes() {
  std::vector<NodeRow> found;
  for (const auto& [number, node] : nodes_) found.push_back(node.row);
  return found;
}

Result<std::vector<NodeState>> MemoryRows::node_states(WallTime now) {
  std::vector<NodeState> found;
  for (const auto& [number, node] : nodes_) {
    found.push_back({.number = number,
                     .label = node.row.label,
                     .kind = node.row.kind,
                     .state = std::string(to_string(node.row.state)),
                     .last_beat_ago = std::max<Duration>(now - node.beaten_at, Duration::zero()),
                     .runs = rows_with(owned_, number).size()});
  }
  return found;
}

// ---- indexes -------------------------------------------------------------------------------------------------------

template <class Edit>
void MemoryRows::edit_indexes(const RunRow& row, Edit edit) {
  const Run& run = row.run;
  if (run.node) edit(owned_, *run.node);
  if (row.parent.value != 0) edit(children_, row.parent);
  if (!run.session.empty() && !domain::is_finished(run.state)) edit(unfinished_, run.session);
  if (run.state == RunState::parked && !row.parked_on.empty()) edit(parked_, row.parked_on);
  if (is_asleep(run)) edit(asleep_, *run.not_before);
  if (run.finished_at) edit(finished_, *run.finished_at);
  if (!can_expire(run)) return;
  if (run.deadline) edit(deadlines_, *run.deadline);
  if (!row.budget_until) return;
  if (row.by_agents_clock) {
    edit(ready_budgets_, std::pair(row.agent, *row.budget_until));
  } else {
    edit(budgets_, *row.budget_until);
  }
}

void MemoryRows::enter(const RunRow& row) {
  const RunNumber number = row.run.number;
  edit_indexes(row, [number](auto& index, const auto& key) { index.emplace(key, number); });
  if (row.run.state == RunState::queued) ++queued_[row.agent];
  if (is_ready(row.run)) ready_.emplace(ReadyKey(row.agent, row.rank, number), row.kept_for);
  if (row.run.state == RunState::running && row.set.value != 0) holding_[row.set].insert(number);
}

void MemoryRows::take_out(const RunRow& row) {
  const RunNumber number = row.run.number;
  edit_indexes(row, [number](auto& index, const auto& key) { index.erase({key, number}); });
  if (row.run.state == RunState::queued) --queued_[row.agent];
  if (is_ready(row.run)) ready_.erase(ReadyKey(row.agent, row.rank, number));
  if (row.run.state == RunState::running && row.set.value != 0) holding_[row.set].erase(number);
}

template <class Key>
std::vector<RunRow> MemoryRows::rows_with(const Index<Key>& index, const Key& key) const {
  std::vector<RunRow> found;
  for (auto at = index.lower_bound({key, RunNumber{}}); at != index.end() && at->first == key; ++at) {
    found.push_back(runs_.at(at->second).row);
  }
  return found;
}

template <class Time>
std::vector<RunRow> MemoryRows::rows_until(const Index<Time>& index, Time until, std::size_t most) const {
  std::vector<RunRow> found;
  for (const auto& [when, number] : index) {
    if (when > until || found.size() >= most) break;
    found.push_back(runs_.at(number).row);
  }
  return found;
}

// ---- runs ----------------------------------------------------------------------------------------------------------

Result<std::optional<RunRow>> MemoryRows::run(RunNumber number) {
  const auto found = runs_.find(number);
  if (found == runs_.end()) return std::nullopt;
  return found->second.row;
}

const MemoryRows::Entry* MemoryRows::find_entry(std::string_view id) const {
  const auto found = ids_.find(id);
  return found == ids_.end() ? nullptr : &runs_.at(found->second);
}

Result<std::optional<RunRow>> MemoryRows::run(std::string_view id) {
  const Entry* const found = find_entry(id);
  if (found == nullptr) return std::nullopt;
  return found->row;
}

Result<std::optional<RunRow>> MemoryRows::run_of_key(AgentNumber agent, std::string_view key) {
  const auto found = keys_.find({std::string(key), agent});
  return found == keys_.end() ? std::nullopt : std::optional(runs_.at(found->second).row);
}

/// Whether the run is kept for a living node other than `from`.
bool MemoryRows::is_kept(std::optional<NodeNumber> keeper, std::optional<NodeNumber> from) const {
  return keeper && keeper != from && nodes_.contains(*keeper);
}

Result<std::vector<RunRow>> MemoryRows::ready(AgentNumber agent, NodeNumber by, Moment now, std::size_t most) {
  std::vector<RunRow> found;
  found.reserve(std::min(most, ready_.size()));
  for (auto at = ready_.lower_bound({agent, kLowest, RunNumber{}}); at != ready_.end() && found.size() < most; ++at) {
    const auto& [of, rank, number] = at->first;
    if (of != agent) break;
    if (is_kept(at->second, by)) continue;
    const RunRow& row = runs_.at(number).row;
    const bool expired =
        (row.run.deadline && *row.run.deadline <= now.wall) || (row.budget_until && *row.budget_until <= now.drawn);
    if (!expired) found.push_back(row);
  }
  return found;
}

Result<std::vector<RunRow>> MemoryRows::owned(NodeNumber node) { return rows_with(owned_, node); }

Result<std::optional<RunRow>> MemoryRows::head_of(std::string_view session) {
  const std::string key(session);
  const auto found = unfinished_.lower_bound({key, RunNumber{}});
  if (found == unfinished_.end() || found->first != key) return std::nullopt;
  return runs_.at(found->second).row;
}

Result<std::vector<RunNumber>> MemoryRows::children(RunNumber parent) {
  std::vector<RunNumber> found;
  for (const RunRow& row : rows_with(children_, parent)) found.push_back(row.run.number);
  return found;
}

Result<std::vector<RunRow>> MemoryRows::parked_on(std::string_view limit) {
  return rows_with(parked_, std::string(limit));
}
Result<std::vector<RunRow>> MemoryRows::asleep(WallTime until, std::size_t most) {
  return rows_until(asleep_, until, most);
}
Result<std::vector<RunRow>> MemoryRows::past_deadline(WallTime wall, std::size_t most) {
  return rows_until(deadlines_, wall, most);
}
Result<std::vector<RunRow>> MemoryRows::past_budget(AwakeTime until, std::size_t most) {
  return rows_until(budgets_, until, most);
}

Result<std::vector<RunRow>> MemoryRows::ready_past_budget(AgentNumber agent, AwakeTime until, std::size_t most) {
  std::vector<RunRow> found;
  for (auto at = ready_budgets_.lower_bound({{agent, AwakeTime::min()}, RunNumber{}}); at != ready_budgets_.end();
       ++at) {
    const auto& [of, when] = at->first;
    if (of != agent || when > until || found.size() >= most) break;
    found.push_back(runs_.at(at->second).row);
  }
  return found;
}

Result<std::vector<std::pair<AgentNumber, AwakeTime>>> MemoryRows::ready_budgets() {
  std::vector<std::pair<AgentNumber, AwakeTime>> found;
  for (const auto& [key, run] : ready_budgets_) {
    if (found.empty() || found.back().first != key.first) found.push_back(key);
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

Result<bool> MemoryRows::has_queued(AgentNumber agent, std::size_t least) { return queued_[agent] >= least; }

Result<bool> MemoryRows::has_ready(AgentNumber agent, NodeNumber by) {
  for (auto at = ready_.lower_bound({agent, kLowest, RunNumber{}}); at != ready_.end(); ++at) {
    if (std::get<0>(at->first) != agent) break;
    if (!is_kept(at->second, by)) return true;
  }
  return false;
}

Result<bool> MemoryRows::has_ready(AgentNumber agent) {
  const auto found = ready_.lower_bound({agent, kLowest, RunNumber{}});
  return found != ready_.end() && std::get<0>(found->first) == agent;
}

Result<Queue> MemoryRows::queue(AgentNumber agent, std::size_t most) {
  Queue queue;
  for (auto at = ready_.lower_bound({agent, kLowest, RunNumber{}}); at != ready_.end(); ++at) {
    const auto& [of, rank, number] = at->first;
    if (of != agent || queue.runs >= static_cast<std::int64_t>(most)) break;
    if (is_kept(at->second)) continue;
    if (queue.runs == 0) queue.rank = rank;
    ++queue.runs;
  }
  return queue;
}

Result<RunNumber> MemoryRows::add(const RunRow& run, std::string input) {
  const RunNumber number{++last_run_.value};
  Entry& entry = runs_[number];
  entry.row = run;
  entry.row.run.number = number;
  if (!input.empty()) entry.search = search_text(run.run.agent, input);
  entry.input = std::move(input);
  ids_.emplace(run.run.id, number);
  if (!run.run.key.empty()) keys_.emplace(std::pair(run.run.key, run.agent), number);
  enter(entry.row);
  return number;
}

Result<> MemoryRows::put(const RunRow& run) {
  RunRow& kept = runs_.at(run.run.number).row;
  take_out(kept);
  kept = run;
  enter(kept);
  return {};
}

Result<std::string> MemoryRows::input(RunNumber run) { return runs_.at(run).input; }

Result<> MemoryRows::put_result(RunNumber run, std::string result) {
  runs_.at(run).result = std::move(result);
  return {};
}

Result<> MemoryRows::add_event(EventRow&& event) {
  const std::int64_t number = ++last_event_;
  if (event.run.value != 0) {
    std::vector<std::int64_t>& events = runs_.at(event.run).events;
    events.push_back(number);
    STINT_ASSERT(event.seq == std::ssize(events));  // no gaps, no duplicates
  }
  events_.emplace_hint(events_.end(), number, std::move(event));
  return {};
}

Result<> MemoryRows::add_day_use(AgentNumber agent, WallTime now, const Use& more) {
  Spent& spent = spent_[{std::chrono::floor<std::chrono::hours>(now), agent}];
  spent.runs += more.attempts;
  spent.tokens += more.tokens;
  spent.cost_micros += more.cost_micros;
  return {};
}

Result<Use> MemoryRows::used_on(WallTime day) {
  const WallTime begin = std::chrono::floor<std::chrono::days>(day), end = begin + std::chrono::days(1);
  Use sum;
  for (auto at = spent_.lower_bound({begin, AgentNumber{}}); at != spent_.end() && at->first.first < end; ++at) {
    sum += {.tokens = at->second.tokens, .cost_micros = at->second.cost_micros};
  }
  return sum;
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

Result<std::optional<std::uint64_t>> MemoryRows::message_end(RunNumber run, std::uint32_t at) {
  const std::vector<std::string>& messages = runs_.at(run).messages;
  if (at >= messages.size()) return std::nullopt;
  std::uint64_t end = 0;
  for (std::uint32_t i = 0; i <= at; ++i) end += messages[i].size();
  return end;
}

Result<> MemoryRows::put_message(RunNumber run, const Message& message, std::uint64_t /*end*/) {
  std::vector<std::string>& messages = runs_.at(run).messages;
  messages.resize(message.at);
  messages.push_back(message.body);
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
  for (const std::int64_t event : entry.events) forget_event(event);
  for (const FamilyNumber number : entry.families) {
    Family& family = families_.at(number);
    if (--family.runs > 0) continue;
    family_heads_.erase(family.row.sum.head);
    families_.erase(number);
  }
  ids_.erase(entry.row.run.id);
  keys_.erase({entry.row.run.key, entry.row.agent});
  runs_.erase(run);
  return {};
}

// ---- families ------------------------------------------------------------------------------------------------------

Result<std::optional<FamilyRow>> MemoryRows::family(std::string_view head) {
  const auto found = family_heads_.find(head);
  return found == family_heads_.end() ? std::nullopt : std::optional(families_.at(found->second).row);
}

Result<FamilyRow> MemoryRows::make_family(const FamilyUse& sum) {
  const FamilyRow row{.number = FamilyNumber{++last_family_.value}, .sum = sum};
  family_heads_.emplace(sum.head, row.number);
  families_[row.number].row = row;
  return row;
}

Result<> MemoryRows::join(FamilyNumber family, RunNumber run) {
  if (runs_.at(run).families.insert(family).second) ++families_.at(family).runs;
  return {};
}

Result<std::vector<FamilyRow>> MemoryRows::families_of(RunNumber run) {
  std::vector<FamilyRow> found;
  for (const FamilyNumber number : runs_.at(run).families) found.push_back(families_.at(number).row);
  std::ranges::sort(found, {}, [](const FamilyRow& row) { return row.sum.head; });
  return found;
}

Result<> MemoryRows::add_use(FamilyNumber family, const Use& more) {
  Use& used = families_.at(family).row.sum.used;
  used.tokens += more.tokens;
  used.cost_micros += more.cost_micros;
  return {};
}

Result<> MemoryRows::put_pruned_at(WallTime at) {
  pruned_at_ = at;
  return {};
}

}  // namespace stint::store
