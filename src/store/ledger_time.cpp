// Members of Ledger: its clocks, which clock measures which budget, and conversion of times for callers.
#include "store/ledger.hpp"

#include <algorithm>
#include <iterator>

namespace stint::store {
namespace {

using domain::Hold;
using domain::RunState;
using std::chrono::milliseconds;

milliseconds up(Duration duration) { return std::chrono::ceil<milliseconds>(duration); }

std::optional<Duration> less(std::optional<Duration> a, std::optional<Duration> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

}  // namespace

// ---- budgets -------------------------------------------------------------------------------------------------------

/// The end of a pause is a moment of real time. If the machine slept during the pause, its end by the budget clock is
/// unknown: it is taken as late as possible, in favour of the runs.
Duration Ledger::stood_still(const AgentRow& agent) const {
  const Standstill& still = agent.standstill;
  if (!still.paused) return still.total;
  const WallTime now = this->now();
  const AwakeTime awake = clock_.awake();
  AwakeTime end = awake;
  if (still.until && *still.until < now) {
    const milliseconds asleep = (now - still.since) - (awake - still.since_awake);
    end = std::clamp(awake - (now - *still.until) + std::max(asleep, milliseconds::zero()), still.since_awake, awake);
  }
  return still.total + (end - still.since_awake);
}

AwakeTime Ledger::agents_clock(const AgentRow& agent) const { return clock_.awake() - up(stood_still(agent)); }

Result<> Ledger::note_pauses(const AgentRow& agent) {
  Standstill next;
  next.total = stood_still(agent);
  next.since = now();
  next.since_awake = clock_.awake();
  bool for_good = false;
  STINT_TRY(const std::vector<LimitMember> uses, rows_.limits_of(agent.set));
  for (const LimitMember& use : uses) {
    const LimitRow& limit = use.limit;
    if (!limit.paused || (limit.paused_until && *limit.paused_until <= next.since)) continue;
    next.paused = true;
    if (!limit.paused_until) for_good = true;
    if (limit.paused_until) next.until = std::max(next.until.value_or(*limit.paused_until), *limit.paused_until);
  }
  if (for_good) next.until.reset();
  if (!next.paused && !agent.standstill.paused) return {};
  return rows_.put(agent.number, next);
}

Result<> Ledger::note_pauses(LimitNumber limit) {
  STINT_TRY(const std::vector<AgentRow> agents, rows_.agents());
  for (const AgentRow& agent : agents) {
    STINT_TRY(const Members members, rows_.members(agent.set));
    if (std::ranges::find(members, limit, &Members::value_type::first) == members.end()) continue;
    STINT_CHECK(note_pauses(agent));
  }
  return {};
}

Result<> Ledger::note_ends_of_pauses() {
  STINT_TRY(const std::vector<AgentRow> agents, rows_.agents());
  for (const AgentRow& agent : agents) {
    const Standstill& still = agent.standstill;
    if (!still.paused) continue;
    const bool over = still.until && *still.until <= now();
    const bool slept = (now() - still.since) - (clock_.awake() - still.since_awake) > StoreClock::kJump;
    if (over || slept) STINT_CHECK(note_pauses(agent));
  }
  return {};
}

Result<> Ledger::choose_clock(RunRow& row) {
  const bool ready = is_ready(row.run);
  if (std::exchange(row.by_agents_clock, ready) == ready || !row.budget_until) return {};
  STINT_TRY(const std::optional<AgentRow> agent, rows_.agent(row.agent));
  if (!agent) return fail(Errc::failed, "the agent of run '" + row.run.id + "' does not exist in the store");
  const milliseconds stood = up(stood_still(*agent));
  *row.budget_until += ready ? -stood : stood;
  return {};
}

Result<std::optional<Duration>> Ledger::budget_left(const RunRow& row) {
  if (!row.budget_until) return std::nullopt;
  if (!row.by_agents_clock) return *row.budget_until - clock_.awake();
  STINT_TRY(const std::optional<AgentRow> agent, rows_.agent(row.agent));
  if (!agent) return fail(Errc::failed, "the agent of run '" + row.run.id + "' does not exist in the store");
  return *row.budget_until - agents_clock(*agent);
}

Result<std::optional<Duration>> Ledger::time_left(const RunRow& row) {
  STINT_TRY(const std::optional<Duration> budget, budget_left(row));
  if (!row.run.deadline) return budget;
  return less(budget, *row.run.deadline - clock_.wall());
}

Result<std::vector<RunRow>> Ledger::expiring() {
  STINT_TRY(std::vector<RunRow> found, rows_.past_deadline(clock_.wall(), kBatchMax));
  std::set<RunNumber> seen;
  for (const RunRow& row : found) seen.insert(row.run.number);
  const auto add = [&](std::vector<RunRow> more) {
    for (RunRow& row : more) {
      if (seen.insert(row.run.number).second) found.push_back(std::move(row));
    }
  };
  STINT_TRY(std::vector<RunRow> spent, rows_.past_budget(clock_.awake(), kBatchMax));
  add(std::move(spent));
  STINT_TRY(const auto waiting, rows_.ready_budgets());
  for (const auto& [number, first] : waiting) {
    STINT_TRY(const std::optional<AgentRow> agent, rows_.agent(number));
    if (!agent || first > agents_clock(*agent)) continue;
    STINT_TRY(std::vector<RunRow> ready, rows_.ready_past_budget(number, agents_clock(*agent), kBatchMax));
    add(std::move(ready));
  }
  return found;
}

Result<std::optional<Duration>> Ledger::next_due() {
  STINT_TRY(const NextDue due, rows_.next_due());
  std::optional<Duration> next;
  if (due.asleep) next = less(next, *due.asleep - now());
  if (due.deadline) next = less(next, *due.deadline - clock_.wall());
  if (due.budget) next = less(next, *due.budget - clock_.awake());
  STINT_TRY(const auto waiting, rows_.ready_budgets());
  for (const auto& [number, first] : waiting) {
    STINT_TRY(const std::optional<AgentRow> agent, rows_.agent(number));
    if (!agent) continue;
    const Standstill& still = agent->standstill;
    Duration left = first - agents_clock(*agent);
    if (still.paused && !still.until) continue;
    if (still.paused) left += std::max<Duration>(*still.until - now(), Duration::zero());
    next = less(next, left);
  }
  return next;
}

// ---- for callers ---------------------------------------------------------------------------------------------------

Result<Run> Ledger::shown(RunRow row) {
  STINT_TRY(std::optional<Duration> left, budget_left(row));
  if (left && row.by_agents_clock) {
    STINT_TRY(const std::optional<AgentRow> agent, rows_.agent(row.agent));
    const Standstill& still = agent->standstill;
    if (still.paused && still.until) *left += std::max<Duration>(*still.until - now(), Duration::zero());
    if (still.paused && !still.until) left.reset();
  }
  Run& run = row.run;
  run.created_at = clock_.shown(run.created_at);
  run.not_before = clock_.shown(run.not_before);
  run.started_at = clock_.shown(run.started_at);
  run.finished_at = clock_.shown(run.finished_at);
  run.expires_at = run.deadline;
  if (left) {
    const WallTime end = clock_.shown(now()) + up(*left);
    run.expires_at = std::min(run.deadline.value_or(end), end);
  }
  return std::move(run);
}

Result<std::vector<Run>> Ledger::shown(std::vector<RunRow> rows) {
  std::vector<Run> runs;
  runs.reserve(rows.size());
  for (RunRow& row : rows) {
    STINT_TRY(runs.emplace_back(), shown(std::move(row)));
  }
  return runs;
}

Result<std::vector<RunRecord>> Ledger::shown(std::vector<std::pair<RunRow, RunRecord>> rows) {
  std::vector<RunRecord> records;
  records.reserve(rows.size());
  for (auto& [row, record] : rows) {
    record.rank = domain::to_unix_ms(clock_.shown(WallTime(milliseconds(row.rank))));
    record.budget = row.budget;
    record.budget_left = row.budget_left;
    STINT_TRY(const std::optional<Duration> left, budget_left(row));
    if (left) record.budget_until = clock_.shown(now()) + up(*left);
    record.parked_on = std::move(row.parked_on);
    record.events = shown(std::move(record.events));
    STINT_TRY(record.run, shown(std::move(row)));
    records.push_back(std::move(record));
  }
  return records;
}

std::vector<Event> Ledger::shown(std::vector<Event> events) const {
  for (Event& event : events) event.at = clock_.shown(event.at);
  return events;
}

}  // namespace stint::store
