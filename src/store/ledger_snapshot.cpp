// Ledger: the whole fleet at one moment. The caller has begun a transaction, or holds the rows alone.
#include "store/ledger.hpp"

#include <algorithm>
#include <tuple>

namespace stint::store {
namespace {

using domain::RunState;

void sort_groups(std::vector<WaitGroup>& groups) {
  std::ranges::sort(groups, {}, [](const WaitGroup& group) { return std::tie(group.cause, group.limit); });
}

}  // namespace

Result<std::vector<AgentLine>> Ledger::lines(const std::vector<Tally::Line>& tallied) {
  std::map<LimitNumber, std::string> names;
  STINT_TRY(const std::vector<LimitMember> limits, rows_.limits());
  for (const LimitMember& member : limits) names.emplace(member.limit.number, member.limit.name);
  std::vector<AgentLine> found;
  for (const Tally::Line& each : tallied) {
    STINT_TRY(const std::optional<AgentRow> agent, rows_.agent(each.agent));
    if (!agent) return fail(Errc::failed, "the agent of a queued run does not exist in the store");
    AgentLine& line = found.emplace_back();
    line.agent = agent->entry.name;
    line.rank_ms = each.rank;
    line.runs = each.runs;
    line.kept = each.kept;
    line.oldest = clock_.shown(each.oldest);
    STINT_TRY(const Members members, rows_.members(agent->set));
    for (const auto& [limit, weight] : members) line.limits.push_back({names.at(limit), weight});
    std::ranges::sort(line.limits, {}, &LimitUse::limit);
  }
  std::ranges::sort(found, {}, [](const AgentLine& line) { return std::tie(line.rank_ms, line.agent); });
  return found;
}

Result<Snapshot> Ledger::snapshot(std::uint32_t listed, std::uint32_t text_bytes_max) {
  Snapshot snapshot;
  STINT_TRY(const std::int64_t last_event, rows_.last_event());
  snapshot.cursor = std::to_string(last_event);
  snapshot.as_of = clock_.shown(now());
  STINT_TRY(const Tally tally, rows_.tally());
  for (const RunState state : domain::kRunStates) snapshot.counts[state] = 0;
  for (const auto& [state, runs] : tally.counts) snapshot.counts[state] = runs;
  for (const Tally::Held& held : tally.held) {
    std::vector<WaitGroup>& groups = held.state == RunState::parked ? snapshot.parked : snapshot.waiting;
    groups.push_back({.cause = domain::cause_of(held.hold),
                      .limit = held.limit,
                      .runs = held.runs,
                      .oldest = clock_.shown(held.oldest),
                      .until = clock_.shown(held.until)});
  }
  sort_groups(snapshot.waiting);
  sort_groups(snapshot.parked);
  STINT_TRY(snapshot.lines, lines(tally.lines));
  STINT_TRY(snapshot.queues, rows_.queues());
  const auto list = [&](Listed which, std::size_t most) -> Result<std::vector<Run>> {
    STINT_TRY(std::vector<RunRow> rows, rows_.listed(which, most, text_bytes_max));
    return shown(std::move(rows));
  };
  STINT_TRY(snapshot.running, list(Listed::running, kRunningListMax));
  STINT_TRY(snapshot.needs, list(Listed::needs, kNeedsListMax));
  STINT_TRY(snapshot.failures, list(Listed::failures, kFailuresListMax));
  STINT_TRY(snapshot.limits, limits(listed));
  STINT_TRY(snapshot.nodes, nodes());
  STINT_TRY(snapshot.today, rows_.used_on(clock_.wall()));
  const auto since = now() - std::chrono::ceil<std::chrono::milliseconds>(kRateWindow);
  STINT_TRY(const LastEnds ends, rows_.last_ends(since, kRateRunsMax));
  snapshot.ended.runs = ends.worked;
  if (ends.first) snapshot.ended.over = now() - *ends.first;
  snapshot.bytes = tally.bytes;
  return snapshot;
}

}  // namespace stint::store
