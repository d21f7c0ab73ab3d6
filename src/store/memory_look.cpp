// The queries of MemoryRows: they change nothing.
#include "domain/run_id.hpp"
#include "store/brief_text.hpp"
#include "store/column_codec.hpp"
#include "store/errors.hpp"
#include "store/memory_rows.hpp"
#include "store/search_text.hpp"

#include <algorithm>
#include <limits>
#include <ranges>
#include <tuple>

namespace stint::store {
namespace {

using domain::RunState;

template <class Values, class Value>
bool has_any(const Values& values, const Value& value) {
  return values.empty() || std::ranges::find(values, value) != values.end();
}

}  // namespace

Event MemoryRows::event_of(const EventRow& row) const {
  return {.run = row.run.value == 0 ? std::string() : runs_.at(row.run).row.run.id,
          .seq = row.seq,
          .fence = row.fence,
          .cause = row.cause,
          .state = row.state,
          .hold = row.hold,
          .node = row.node,
          .error = row.error,
          .data = row.data,
          .at = row.at};
}

Result<const MemoryRows::Entry*> MemoryRows::must_find(const std::string& id) const {
  const Entry* const found = find_entry(id);
  if (found == nullptr) return fail(no_such_run(id));
  return found;
}

Result<const MemoryRows::Entry*> MemoryRows::find_by_prefix(std::string_view prefix) const {
  const Entry* found = nullptr;
  if (prefix.empty() || prefix.size() >= domain::kRunIdLength) return found;
  for (const auto& [id, number] : ids_) {
    if (!id.starts_with(prefix)) continue;
    if (found != nullptr) {
      return fail(Errc::invalid,
                  "several runs have ids that begin with '" + std::string(prefix) + "'. Use more characters of the id");
    }
    found = &runs_.at(number);
  }
  return found;
}

Result<std::optional<RunRow>> MemoryRows::find(const std::string& id) {
  const Entry* entry = find_entry(id);
  if (entry == nullptr) {
    STINT_TRY(entry, find_by_prefix(id));
  }
  if (entry == nullptr) return std::nullopt;
  Result<std::optional<RunRow>> found(entry->row);
  (*found)->run.input = entry->input;
  (*found)->run.result = entry->result;
  return found;
}

bool MemoryRows::matches(const Filter& filter, const Entry& entry, std::optional<RunNumber> parent) {
  const Run& run = entry.row.run;
  if (parent && entry.row.parent != *parent) return false;
  if (!has_any(filter.states, run.state) || !has_any(filter.holds, run.hold)) return false;
  const bool agent = filter.agent.empty() || run.agent == filter.agent ||
                     std::ranges::find(filter.also_agents, run.agent) != filter.also_agents.end();
  if (!agent || (!filter.session.empty() && run.session != filter.session)) return false;
  if ((filter.since && run.created_at < *filter.since) || (filter.until && run.created_at >= *filter.until))
    return false;
  return filter.search.empty() || run.id.starts_with(filter.search) || entry.search.contains(filter.search) ||
         lower_ascii(run.error).contains(filter.search);
}

std::vector<RunRow> MemoryRows::list(const Filter& filter) const {
  std::vector<RunRow> found;
  std::optional<RunNumber> parent;
  if (!filter.parent.empty()) {
    const Entry* const entry = find_entry(filter.parent);
    if (entry == nullptr) return found;
    parent = entry->row.run.number;
  }
  const auto end = filter.before.value > 0 ? runs_.lower_bound(filter.before) : runs_.end();
  for (const auto& [number, entry] : std::views::reverse(std::ranges::subrange(runs_.begin(), end))) {
    if (found.size() >= filter.most) break;
    if (!(filter.only.empty() ? matches(filter, entry, parent) : has_any(filter.only, number))) continue;
    Run& run = found.emplace_back(entry.row).run;
    if (!filter.texts) continue;
    run.input = brief_text(entry.input, kBriefInput, filter.text_bytes_max);
    run.result = brief_text(entry.result, kBriefResult, filter.text_bytes_max);
  }
  return found;
}

Matches MemoryRows::match(const Filter& filter) const {
  Matches matches;
  for (const RunRow& row : list(filter)) matches.runs.push_back({row.run.number, row.run.id});
  if (matches.runs.size() == filter.most && !matches.runs.empty()) matches.next = matches.runs.back().number;
  return matches;
}

std::vector<RunRow> MemoryRows::with_key(const std::string& agent, const std::string& key) const {
  std::vector<RunRow> found;
  for (auto at = keys_.lower_bound({key, AgentNumber{}}); at != keys_.end() && at->first.first == key; ++at) {
    const Entry& entry = runs_.at(at->second);
    if (!agent.empty() && entry.row.run.agent != agent) continue;
    Run& run = found.emplace_back(entry.row).run;
    run.input = entry.input;
    run.result = entry.result;
  }
  return found;
}

Result<std::vector<Event>> MemoryRows::events(const std::string& id, std::int64_t after, std::uint32_t most) {
  STINT_TRY(const Entry* const found, must_find(id));
  std::vector<Event> page;
  for (const std::int64_t number : found->events) {
    const EventRow& event = events_.at(number);
    if (event.seq > after && page.size() < most) page.push_back(event_of(event));
  }
  return page;
}

Result<FeedPage> MemoryRows::feed(const std::string& cursor, std::uint32_t most) {
  if (cursor == kFeedNow) return FeedPage{{}, std::to_string(last_event_)};
  STINT_TRY(const std::int64_t after, read_cursor(cursor));
  if (after > last_event_) return fail(cursor_ahead(cursor));
  FeedPage page;
  page.cursor = std::to_string(after);
  page.pruned = !cursor.empty() && after < pruned_event_;
  if (page.pruned) return page;
  for (auto at = events_.upper_bound(after); at != events_.end() && page.events.size() < most; ++at) {
    page.events.push_back(event_of(at->second));
    page.events.back().cursor = page.cursor = std::to_string(at->first);
  }
  return page;
}

Result<Output> MemoryRows::output(const std::string& id) {
  STINT_TRY(const Entry* const found, must_find(id));
  return found->output;
}

Result<std::vector<std::string>> MemoryRows::messages(const std::string& id, std::uint32_t from,
                                                      std::size_t bytes_max) {
  STINT_TRY(const Entry* const found, must_find(id));
  std::vector<std::string> messages;
  std::size_t bytes = 0;
  for (std::size_t at = from; at < found->messages.size(); ++at) {
    bytes += found->messages[at].size();
    if (bytes > bytes_max && !messages.empty()) break;
    messages.push_back(found->messages[at]);
  }
  return messages;
}

/// A kept run has its place among all others. For the others no kept run is counted, as no other node may claim it.
Result<std::optional<std::int64_t>> MemoryRows::place(const std::string& id, std::int64_t most) {
  STINT_TRY(const Entry* const found, must_find(id));
  const RunRow& row = found->row;
  const ReadyKey key(row.agent, row.rank, row.run.number);
  if (!ready_.contains(key)) return std::nullopt;
  const bool own = is_kept(row.kept_for);
  std::int64_t place = 1;
  for (auto at = ready_.lower_bound({row.agent, std::numeric_limits<std::int64_t>::min(), RunNumber{}});
       at->first != key; ++at) {
    if (place >= most) break;
    if (own || !is_kept(at->second)) ++place;
  }
  return place;
}

Stats MemoryRows::stats() const {
  Stats stats;
  for (const auto& [number, entry] : runs_) ++stats.runs[entry.row.run.state];
  for (const auto& [key, keeper] : ready_) stats.ready += is_kept(keeper) ? 0U : 1U;
  stats.nodes = nodes_.size();
  stats.events = events_.size();
  return stats;
}

Result<std::vector<QueueState>> MemoryRows::queues() {
  std::vector<QueueState> found;
  for (const auto& [name, number] : agent_names_) {
    const auto queued = queued_.find(number);
    found.push_back({name, queued == queued_.end() ? 0 : queued->second, agents_.at(number).entry.queued_max});
  }
  return found;
}

std::vector<std::pair<RunRow, RunRecord>> MemoryRows::dump(RunNumber after, std::uint32_t most) const {
  std::vector<std::pair<RunRow, RunRecord>> records;
  std::size_t messages = 0;
  for (auto at = runs_.upper_bound(after); at != runs_.end() && records.size() < most && messages < kConversationMax;
       ++at) {
    const Entry& entry = at->second;
    auto& [row, record] = records.emplace_back(entry.row, RunRecord());
    row.run.input = entry.input;
    row.run.result = entry.result;
    for (const FamilyNumber family : entry.families) record.families.push_back(families_.at(family).row.sum);
    std::ranges::sort(record.families, {}, &FamilyUse::head);
    for (const std::int64_t event : entry.events) record.events.push_back(event_of(events_.at(event)));
    record.output = entry.output;
    record.conversation = entry.messages;
    for (const std::string& message : entry.messages) messages += message.size();
  }
  return records;
}

}  // namespace stint::store
