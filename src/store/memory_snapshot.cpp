// MemoryRows: sums and lists for a snapshot. Counts every run: this store is the model of the others.
#include "store/brief_text.hpp"
#include "store/memory_rows.hpp"

#include <algorithm>
#include <ranges>
#include <tuple>

namespace stint::store {
namespace {

using domain::Hold;
using domain::RunState;

std::optional<WallTime> earliest(std::optional<WallTime> known, WallTime time) {
  return known ? std::min(*known, time) : time;
}

bool is_listed(Listed which, const Run& run) {
  switch (which) {
    case Listed::running: return run.state == RunState::running;
    case Listed::needs:
      return run.state == RunState::in_doubt || (run.state == RunState::parked && run.hold == Hold::person);
    case Listed::failures: return run.state == RunState::failed || run.state == RunState::expired;
  }
  return false;
}

}  // namespace

/// A run that was never claimed waits since it was submitted, any other since its last change.
WallTime MemoryRows::waits_since(const Entry& entry) const {
  const Run& run = entry.row.run;
  return run.fence.value == 0 ? run.created_at : events_.at(entry.events.back()).at;
}

Result<Tally> MemoryRows::tally() {
  Tally tally;
  std::map<std::tuple<RunState, Hold, std::string>, Tally::Held> held;
  std::map<AgentNumber, Tally::Line> lines;
  for (const auto& [number, entry] : runs_) {
    const Run& run = entry.row.run;
    ++tally.counts[run.state];
    if (run.state != RunState::queued && run.state != RunState::parked) continue;
    const WallTime since = waits_since(entry);
    if (run.state == RunState::queued && run.hold == Hold::none) {
      Tally::Line& line = lines[entry.row.agent];
      line.agent = entry.row.agent;
      line.rank = line.runs == 0 ? entry.row.rank : std::min(line.rank, entry.row.rank);
      ++line.runs;
      if (is_kept(entry.row.kept_for)) ++line.kept;
      line.oldest = earliest(line.oldest, since);
    } else {
      Tally::Held& group = held[{run.state, run.hold, entry.row.parked_on}];
      ++group.runs;
      group.oldest = earliest(group.oldest, since);
      if (run.not_before && run.hold != Hold::session) group.until = earliest(group.until, *run.not_before);
    }
  }
  for (auto& [key, group] : held) {
    std::tie(group.state, group.hold, group.limit) = key;
    tally.held.push_back(std::move(group));
  }
  for (auto& [number, line] : lines) tally.lines.push_back(std::move(line));
  return tally;
}

Result<LastEnds> MemoryRows::last_ends(WallTime since, std::size_t most) {
  LastEnds ends;
  for (const auto& [time, number] : finished_ | std::views::reverse | std::views::take(most)) {
    if (time <= since) break;
    const RunState state = runs_.at(number).row.run.state;
    if (state != RunState::succeeded && state != RunState::failed) continue;
    ++ends.worked;
    ends.first = time;
  }
  return ends;
}

Result<std::vector<RunRow>> MemoryRows::listed(Listed which, std::size_t most, std::uint32_t text_bytes_max) {
  std::vector<RunRow> found;
  for (const auto& [number, entry] : runs_) {
    if (!is_listed(which, entry.row.run)) continue;
    Run& run = found.emplace_back(entry.row).run;
    run.input = brief_text(entry.input, kBriefInput, text_bytes_max);
    run.result = brief_text(entry.result, kBriefResult, text_bytes_max);
  }
  if (which == Listed::running) {
    std::ranges::sort(found, {}, [](const RunRow& row) { return std::pair(row.run.started_at, row.run.number); });
  } else if (which == Listed::failures) {
    std::ranges::sort(found, std::greater(),
                      [](const RunRow& row) { return std::pair(row.run.finished_at, row.run.number); });
  }
  if (found.size() > most) found.resize(most);
  return found;
}

void MemoryRows::forget_event(std::int64_t number) {
  events_.erase(number);
  pruned_event_ = std::max(pruned_event_, number);
}

Result<> MemoryRows::forget_fleet_events(WallTime before) {
  std::vector<std::int64_t> old;
  for (const auto& [number, event] : events_) {
    if (event.run.value == 0 && event.at < before) old.push_back(number);
  }
  for (const std::int64_t number : old) forget_event(number);
  return {};
}

}  // namespace stint::store
