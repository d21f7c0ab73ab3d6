// Those members of MemoryRows that only look.
#include "domain/run_id.hpp"
#include "store/brief_text.hpp"
#include "store/memory_rows.hpp"
#include "store/words.hpp"

#include <algorithm>
#include <tuple>

namespace stint::store {

void MemoryRows::add_texts(Run& run, const Entry& entry) {
  run.input = entry.input;
  run.result = entry.result;
}

Event MemoryRows::event_of(const EventRow& row) const {
  return {.run = row.run == kFleet ? std::string() : entry_of(row.run).row.run.id,
          .seq = row.seq,
          .fence = row.fence,
          .cause = row.cause,
          .state = row.state,
          .hold = row.hold,
          .worker = row.worker,
          .error = row.error,
          .data = row.data,
          .at = row.at};
}

const EventRow& MemoryRows::event_at(const EventPlace& place) const {
  return place.run == kFleet ? fleet_events_[place.index] : entry_of(place.run).events[place.index].row;
}

Result<std::optional<RunRow>> MemoryRows::find(const std::string& id) {
  const Entry* found = find_entry(id);
  if (found == nullptr) {
    STINT_TRY(found, find_by_part(id));
  }
  if (found == nullptr) return std::nullopt;
  Result<std::optional<RunRow>> row(std::in_place, found->row);
  add_texts((*row)->run, *found);
  return row;
}

/// A person has written it: that is rare enough to look at all of them.
Result<const MemoryRows::Entry*> MemoryRows::find_by_part(const std::string& id) const {
  const Entry* found = nullptr;
  if (id.empty() || id.size() >= domain::kRunIdLength) return found;
  for (const auto& [each, entry] : ids_) {
    if (!each.starts_with(id)) continue;
    if (found != nullptr) return fail(Errc::invalid, "more than one run begins with '" + id + "'");
    found = entry;
  }
  return found;
}

std::vector<RunRow> MemoryRows::list(const Filter& filter) const {
  std::vector<RunRow> found;
  const auto parent = ids_.find(filter.parent);
  if (!filter.parent.empty() && parent == ids_.end()) return found;
  for (const auto& [number, entry] : runs_.before(filter.before > 0 ? filter.before : next_run_)) {
    if (found.size() >= filter.most) break;
    const Entry& each = **entry;
    const RunRow& row = each.row;
    const Run& run = row.run;
    if (!filter.states.empty() && std::ranges::find(filter.states, run.state) == filter.states.end()) continue;
    if (!filter.parent.empty() && row.parent != parent->second->row.run.number) continue;
    if (!filter.agent.empty() && run.agent != filter.agent) continue;
    if (!filter.session.empty() && run.session != filter.session) continue;
    found.push_back(row);
    if (!filter.texts) continue;
    found.back().run.input = brief_text(each.input, kBriefInput, filter.text_bytes_max);
    found.back().run.result = brief_text(each.result, kBriefResult, filter.text_bytes_max);
  }
  return found;
}

std::vector<RunRow> MemoryRows::with_key(const std::string& agent, const std::string& key) const {
  std::vector<RunRow> found;
  for (auto at = keys_.lower_bound({key, 0}); at != keys_.end() && at->first.first == key; ++at) {
    const Entry& entry = entry_of(at->second);
    if (!agent.empty() && entry.row.run.agent != agent) continue;
    add_texts(found.emplace_back(entry.row).run, entry);
  }
  return found;
}

Result<std::vector<Event>> MemoryRows::events(const std::string& id, std::int64_t after, std::uint32_t most) {
  const Entry* const found = find_entry(id);
  if (found == nullptr) return fail(no_such_run(id));
  std::vector<Event> page;
  for (auto i = static_cast<std::size_t>(std::max<std::int64_t>(after, 0)); i < found->events.size(); ++i) {
    if (page.size() >= most) break;
    page.push_back(event_of(found->events[i].row));
  }
  return page;
}

Result<FeedPage> MemoryRows::feed(const std::string& cursor, std::uint32_t most) {
  if (cursor == kFeedNow) return FeedPage{{}, std::to_string(next_event_ - 1)};
  STINT_TRY(const std::int64_t after, read_cursor(cursor));
  if (after >= next_event_) return fail(cursor_ahead(cursor));
  FeedPage page;
  page.cursor = std::to_string(after);
  for (const auto& [number, place] : feed_.after(after)) {
    if (page.events.size() >= most) break;
    page.events.push_back(event_of(event_at(*place)));
    page.events.back().cursor = page.cursor = std::to_string(number);
  }
  return page;
}

Result<Output> MemoryRows::output(const std::string& id) {
  const Entry* const found = find_entry(id);
  if (found == nullptr) return fail(no_such_run(id));
  return found->output;
}

Result<std::optional<std::int64_t>> MemoryRows::place(const std::string& id, std::int64_t most) {
  const Entry* const found = find_entry(id);
  if (found == nullptr) return fail(no_such_run(id));
  const RunRow& row = found->row;
  const auto& ready = agents_.at(row.agent).ready;
  // One that its own process carries stands in the same line as the others of that kind; a daemon takes none of them.
  const bool own = is_kept(row.run.number);
  std::int64_t place = 1;
  for (const auto& [rank, number] : ready) {
    if (number == row.run.number || place >= most) return place;
    if (own || !is_kept(number)) ++place;
  }
  return std::nullopt;
}

Stats MemoryRows::stats() const {
  Stats stats;
  for (const auto& [number, entry] : runs_.after(0)) ++stats.runs[(*entry)->row.run.state];
  for (const auto& [number, agent] : agents_) {
    for (const auto& [rank, run] : agent.ready) stats.ready += is_kept(run) ? 0U : 1U;
  }
  for (const auto& [number, worker] : workers_) {
    stats.workers += worker.row.state != WorkerRow::State::dead ? 1U : 0U;
  }
  stats.events = feed_.size();
  return stats;
}

std::vector<QueueState> MemoryRows::queues() const {
  std::vector<QueueState> found;
  for (const auto& [number, agent] : agents_) {
    found.push_back({agent.row.entry.name, agent.queued, agent.row.entry.queued_max});
  }
  std::ranges::sort(found, {}, &QueueState::agent);
  return found;
}

std::vector<Spent> MemoryRows::spent(WallTime since) const {
  std::vector<Spent> found;
  for (auto at = spent_.lower_bound({std::chrono::floor<std::chrono::days>(since), 0}); at != spent_.end(); ++at) {
    const auto& [day, agent] = at->first;
    Spent& spent = found.emplace_back(at->second);
    spent.day = day_of(day);
    spent.agent = agents_.at(agent).row.entry.name;
  }
  std::ranges::sort(found, {}, [](const Spent& spent) { return std::tie(spent.day, spent.agent); });
  return found;
}

std::vector<std::pair<RunRow, RunRecord>> MemoryRows::dump(RunNumber after, std::uint32_t most) const {
  std::vector<std::pair<RunRow, RunRecord>> records;
  for (const auto& [number, kept] : runs_.after(after)) {
    if (records.size() >= most) break;
    const Entry& entry = **kept;
    auto& [row, record] = records.emplace_back(entry.row, RunRecord());
    add_texts(row.run, entry);
    for (const FamilyNumber family : entry.families) record.families.push_back(families_.at(family).row.sum);
    std::ranges::sort(record.families, {}, &FamilyUse::head);
    for (const KeptEvent& event : entry.events) record.events.push_back(event_of(event.row));
    record.output = entry.output;
  }
  return records;
}

}  // namespace stint::store
