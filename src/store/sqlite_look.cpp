// Members of SqliteRows: queries.
#include "store/brief_text.hpp"
#include "store/column_codec.hpp"
#include "store/errors.hpp"
#include "store/sqlite_rows.hpp"
#include "store_sql_sqlite.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace stint::store {
namespace {

using domain::Hold;
using domain::RunState;
namespace query = sqlite::query;

/// Columns from 0: seq, fence, node_id, cause, state, hold, error, data, at.
Result<Event> read_event(const Query& query) {
  Event event;
  event.seq = query.number(0);
  event.fence = Fence{query.number(1)};
  event.node = query.maybe<NodeNumber>(2);
  event.cause = query.text(3);
  if (!query.is_null(4)) event.state = domain::parse_run_state(query.text(4));
  STINT_TRY(event.hold, read_hold(query.text(5)));
  event.error = query.text(6);
  event.data = query.text(7);
  event.at = query.time(8).value_or(WallTime());
  return event;
}

}  // namespace

Result<std::optional<RunRow>> SqliteRows::find(const std::string& id) {
  if (id.empty()) return std::nullopt;
  Query query(database_, query::by_prefix);
  query.bind(1, id).bind(2, id + '\x7f');
  STINT_TRY(std::vector<RunRow> rows, read_all(query));
  if (rows.empty()) return std::nullopt;
  Run& run = rows.front().run;
  if (rows.size() > 1 && run.id != id)
    return fail(Errc::invalid, "several runs have ids that begin with '" + id + "'. Use more characters of the id");
  STINT_TRY(run.input, input(run.number));
  STINT_TRY(run.result, result(run.number));
  return std::move(rows.front());
}

Result<> SqliteRows::add_texts(std::vector<RunRow>& rows, std::uint32_t text_bytes_max) {
  for (RunRow& row : rows) {
    Run& run = row.run;
    STINT_TRY(std::string whole_input, input(run.number));
    run.input = brief_text(std::move(whole_input), kBriefInput, text_bytes_max);
    STINT_TRY(std::string whole_result, result(run.number));
    run.result = brief_text(std::move(whole_result), kBriefResult, text_bytes_max);
  }
  return {};
}

Result<std::vector<RunRow>> SqliteRows::with_key(const std::string& of, const std::string& key) {
  std::optional<AgentNumber> number;
  if (!of.empty()) {
    STINT_TRY(const std::optional<AgentRow> row, agent(of));
    if (!row) return std::vector<RunRow>();
    number = row->number;
  }
  Query query(database_, query::with_key);
  query.bind(1, key).bind(2, number);
  STINT_TRY(std::vector<RunRow> rows, read_all(query));
  for (RunRow& row : rows) {
    Run& run = row.run;
    STINT_TRY(run.input, input(run.number));
    STINT_TRY(run.result, result(run.number));
  }
  return rows;
}

Result<std::vector<Event>> SqliteRows::events(const std::string& id, std::int64_t after, std::uint32_t most) {
  STINT_TRY(const std::optional<RunRow> row, run(id));
  if (!row) return fail(no_such_run(id));
  return events_of(row->run, after, most);
}

Result<std::vector<Event>> SqliteRows::events_of(const Run& run, std::int64_t after, std::int64_t most) {
  Query query(database_, query::events);
  query.bind(1, run.number).bind(2, after).bind(3, most);
  std::vector<Event> found;
  while (query.next()) {
    STINT_TRY(Event event, read_event(query));
    event.run = run.id;
    found.push_back(std::move(event));
  }
  STINT_CHECK(query.end());
  return found;
}

Result<FeedPage> SqliteRows::feed(const std::string& cursor, std::uint32_t most) {
  if (cursor == kFeedNow) {
    STINT_TRY(const std::int64_t now, last_event());
    return FeedPage{{}, std::to_string(now)};
  }
  STINT_TRY(const std::int64_t after, read_cursor(cursor));
  FeedPage page;
  page.cursor = std::to_string(after);
  Query query(database_, query::feed);
  query.bind(1, after).bind(2, std::int64_t{most});
  while (query.next()) {
    STINT_TRY(Event event, read_event(query));
    event.cursor = page.cursor = std::to_string(query.number(9));
    event.run = query.text(10);
    page.events.push_back(std::move(event));
  }
  STINT_CHECK(query.end());
  if (page.events.empty()) {
    STINT_TRY(const std::int64_t now, last_event());
    if (after > now) return fail(cursor_ahead(cursor));
  }
  if (cursor.empty()) return page;
  // After the events: what is deleted between the two reads is missed by neither.
  STINT_TRY(const std::uint64_t pruned, count(query::pruned_event));
  if (static_cast<std::uint64_t>(after) < pruned) return FeedPage{{}, std::to_string(after), true};
  return page;
}

Result<Output> SqliteRows::output(const std::string& id) {
  STINT_TRY(const std::optional<RunRow> row, run(id));
  if (!row) return fail(no_such_run(id));
  return output_of(row->run.number);
}

Result<Output> SqliteRows::output_of(RunNumber run) {
  Output output;
  {
    Query query(database_, query::output_bytes);
    query.bind(1, run);
    if (query.next()) output.bytes = static_cast<std::uint64_t>(query.number(0));
    STINT_CHECK(query.end());
  }
  Query query(database_, query::chunks);
  query.bind(1, run);
  while (query.next()) {
    (query.number(0) < static_cast<std::int64_t>(kOutputHeadMax) ? output.head : output.tail) += query.text(1);
  }
  STINT_CHECK(query.end());
  if (output.tail.size() > kOutputTailMax) output.tail.erase(0, output.tail.size() - kOutputTailMax);
  return output;
}

Result<std::vector<std::string>> SqliteRows::messages(const std::string& id, std::uint32_t from,
                                                      std::size_t bytes_max) {
  STINT_TRY(const std::optional<RunRow> row, run(id));
  if (!row) return fail(no_such_run(id));
  return messages_of(row->run.number, from, bytes_max);
}

Result<std::vector<std::string>> SqliteRows::messages_of(RunNumber run, std::uint32_t from, std::size_t bytes_max) {
  Query query(database_, query::messages);
  query.bind(1, run).bind(2, std::int64_t{from});
  std::vector<std::string> messages;
  std::size_t bytes = 0;
  while (query.next()) {
    bytes += static_cast<std::size_t>(query.number(0));
    if (bytes > bytes_max && !messages.empty()) break;
    messages.push_back(query.text(1));
  }
  STINT_CHECK(query.end());
  return messages;
}

Result<std::optional<std::int64_t>> SqliteRows::place(const std::string& id, std::int64_t most) {
  STINT_TRY(const std::optional<RunRow> row, run(id));
  if (!row) return fail(no_such_run(id));
  if (row->run.state != RunState::queued || row->run.hold != Hold::none) return std::nullopt;
  Query query(database_, query::place);
  query.bind(1, row->agent).bind(2, row->rank).bind(3, row->run.number).bind(4, most);
  query.bind(5, std::int64_t{row->kept_for ? 1 : 0});
  std::optional<std::int64_t> place;
  if (query.next()) place = query.number(0);
  STINT_CHECK(query.end());
  return place;
}

Result<std::vector<LimitHolder>> SqliteRows::holders(LimitNumber limit, std::size_t most) {
  Query query(database_, query::holders);
  query.bind(1, limit).bind(2, static_cast<std::int64_t>(most));
  std::vector<LimitHolder> found;
  while (query.next()) {
    LimitHolder& holder = found.emplace_back();
    holder.run = query.text(0);
    STINT_TRY(holder.agent, agent_name(AgentNumber{query.number(1)}));
    holder.weight = static_cast<std::uint32_t>(query.number(2));
    holder.since = query.time(3).value_or(WallTime());
  }
  STINT_CHECK(query.end());
  return found;
}

/// Each agent's queue is read in the order of an index; the first of each queue contain the first of all.
Result<std::vector<LimitWaiter>> SqliteRows::waiters(LimitNumber limit, std::size_t most) {
  std::vector<std::pair<AgentNumber, std::uint32_t>> agents;
  {
    Query query(database_, query::agents_using);
    query.bind(1, limit);
    while (query.next()) agents.emplace_back(query.number(0), static_cast<std::uint32_t>(query.number(1)));
    STINT_CHECK(query.end());
  }
  std::vector<std::tuple<std::int64_t, RunNumber, LimitWaiter>> found;  // by rank and number
  for (const auto& [number, weight] : agents) {
    STINT_TRY(const std::string name, agent_name(number));
    Query query(database_, query::first_ready);
    query.bind(1, number).bind(2, static_cast<std::int64_t>(most));
    while (query.next()) {
      found.emplace_back(query.number(1), query.number(2),
                         LimitWaiter{query.text(0), name, weight, query.time(3).value_or(WallTime())});
    }
    STINT_CHECK(query.end());
  }
  std::ranges::sort(found, {}, [](const auto& each) { return std::pair(std::get<0>(each), std::get<1>(each)); });
  std::vector<LimitWaiter> line;
  for (auto& [rank, number, waiter] : found) {
    if (line.size() < most) line.push_back(std::move(waiter));
  }
  return line;
}

Result<std::uint64_t> SqliteRows::count_waiters(LimitNumber limit, std::optional<LinePlace> before, std::size_t most) {
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  const LinePlace place = before.value_or(LinePlace{kLast, RunNumber{kLast}});
  Query query(database_, query::count_waiters);
  query.bind(1, limit).bind(2, place.rank).bind(3, place.run);
  query.bind(4, static_cast<std::int64_t>(std::min(most, static_cast<std::size_t>(kLast))));
  std::uint64_t count = 0;
  if (query.next()) count = static_cast<std::uint64_t>(query.number(0));
  STINT_CHECK(query.end());
  return count;
}

Result<Stats> SqliteRows::stats() {
  Stats stats;
  Query sums(database_, query::sums);
  while (sums.next()) {
    const auto state = domain::parse_run_state(sums.text(0));
    if (state) stats.runs[*state] = static_cast<std::uint64_t>(sums.number(1));
  }
  STINT_CHECK(sums.end());
  STINT_TRY(stats.ready, count(query::count_ready));
  STINT_TRY(stats.events, count(query::count_events));
  STINT_TRY(stats.nodes, count(query::count_nodes));
  STINT_TRY(stats.bytes, count(query::count_bytes));
  return stats;
}

Result<std::uint64_t> SqliteRows::count(std::string_view statement) {
  Query query(database_, statement);
  std::uint64_t number = 0;
  if (query.next()) number = static_cast<std::uint64_t>(query.number(0));
  STINT_CHECK(query.end());
  return number;
}

Result<std::vector<QueueState>> SqliteRows::queues() {
  Query query(database_, query::queues);
  std::vector<QueueState> found;
  while (query.next()) {
    found.push_back(
        {query.text(0), static_cast<std::uint64_t>(query.number(1)), static_cast<std::uint64_t>(query.number(2))});
  }
  STINT_CHECK(query.end());
  return found;
}

Result<std::vector<std::pair<RunRow, RunRecord>>> SqliteRows::dump(RunNumber after, std::uint32_t most) {
  Query query(database_, query::dump);
  query.bind(1, after).bind(2, std::int64_t{most});
  STINT_TRY(std::vector<RunRow> rows, read_all(query));
  std::vector<std::pair<RunRow, RunRecord>> records;
  std::size_t messages = 0;
  for (RunRow& read : rows) {
    auto& [row, record] = records.emplace_back(std::move(read), RunRecord());
    Run& run = row.run;
    STINT_TRY(run.input, input(run.number));
    STINT_TRY(run.result, result(run.number));
    STINT_TRY(const std::vector<FamilyRow> families, families_of(run.number));
    for (const FamilyRow& family : families) record.families.push_back(family.sum);
    STINT_TRY(record.events, events_of(run, 0, -1));
    STINT_TRY(record.output, output_of(run.number));
    STINT_TRY(record.conversation, messages_of(run.number, 0, kConversationMax));
    for (const std::string& message : record.conversation) messages += message.size();
    if (messages >= kConversationMax) break;
  }
  return records;
}

Result<std::vector<std::string>> SqliteRows::check() {
  std::vector<std::string> findings;
  {
    Query query(database_, query::integrity);
    while (query.next()) {
      if (query.text(0) != "ok") findings.push_back("the file is damaged: " + query.text(0));
    }
    STINT_CHECK(query.end());
  }
  for (Query query(database_, query::wrong_ended); query.next();) {
    findings.push_back("the counter of runs that are '" + query.text(0) + "' is " + std::to_string(query.number(1)) +
                       ", but their number is " + std::to_string(query.number(2)));
  }
  Query query(database_, query::wrong_counts);
  while (query.next()) {
    findings.push_back("the queue counter of '" + query.text(0) + "' is " + std::to_string(query.number(1)) +
                       ", but the number of queued runs is " + std::to_string(query.number(2)));
  }
  STINT_CHECK(query.end());
  return findings;
}

}  // namespace stint::store
