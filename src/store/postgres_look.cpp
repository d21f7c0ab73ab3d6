// The queries of PostgresStore, except those of limits.
#include "domain/run_id.hpp"
#include "store/column_codec.hpp"
#include "store/errors.hpp"
#include "store/postgres_cursor.hpp"
#include "store/postgres_read.hpp"
#include "store/postgres_store.hpp"
#include "store_sql_postgres.hpp"

#include <algorithm>
#include <limits>

namespace stint::store {
namespace {

using domain::RunState;
using Texts = std::vector<std::string>;
namespace query = postgres::query;

constexpr int kPrunedXidColumn = kEventColumn + 1, kPrunedEventColumn = kEventColumn + 2;  // after those of an event

/// The parameters of the condition of a list, in order.
Parameters wanted(const Filter& asked, RunNumber least) {
  Filter filter = asked;
  if (!asked.only.empty()) {
    filter = {};
    filter.only = asked.only;
    filter.most = asked.most;
  }
  Texts states, holds, agents = filter.also_agents;
  std::vector<std::optional<std::int64_t>> only;
  for (const RunState state : filter.states) states.emplace_back(to_string(state));
  for (const domain::Hold hold : filter.holds) holds.emplace_back(to_string(hold));
  for (const RunNumber number : filter.only) only.emplace_back(number.value);
  if (filter.agent.empty()) {
    agents.clear();
  } else {
    agents.push_back(filter.agent);
  }
  Parameters parameters;
  parameters.texts(states).texts(agents).text(filter.session).number(filter.before).number(std::int64_t{filter.most});
  parameters.text(filter.parent).number(least).texts(holds).number(maybe_unix_ms(filter.since));
  parameters.number(maybe_unix_ms(filter.until)).text(filter.search).numbers(only);
  return parameters;
}

}  // namespace

Task<Result<std::optional<Run>>> PostgresStore::find(std::string id) {
  if (id.empty()) co_return std::nullopt;
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::by_prefix, Parameters().text(id)));
  if (rows.empty()) co_return std::nullopt;
  STINT_CO_TRY(Run run, read_whole_run(rows, 0));
  if (rows.size() > 1 && run.id != id)
    co_return fail(Errc::invalid, "several runs have ids that begin with '" + id + "'. Use more characters of the id");
  co_return std::move(run);
}

Task<Result<std::vector<Run>>> PostgresStore::list(Filter filter) {
  Parameters parameters = wanted(filter, RunNumber());
  if (filter.texts) parameters.number(std::int64_t{filter.text_bytes_max});
  STINT_CO_TRY(const PostgresRows rows,
               co_await read(filter.texts ? query::list_with_texts : query::list, std::move(parameters)));
  std::vector<Run> runs;
  for (int row = 0; row < rows.size(); ++row) {
    STINT_CO_TRY(runs.emplace_back(), filter.texts ? read_whole_run(rows, row) : read_run(rows, row));
  }
  co_return runs;
}

/// Unfinished runs and children have indexes; the scan over all runs is cut into windows of numbers. A window begins at
/// a run, so that gaps cost nothing.
Task<Result<Matches>> PostgresStore::match(Filter filter) {
  Matches matches;
  RunNumber least;
  const bool indexed =
      !filter.parent.empty() || (!filter.states.empty() && std::ranges::none_of(filter.states, &domain::is_finished));
  if (!indexed) {
    const auto newest_before = [this](RunNumber number) -> Task<Result<RunNumber>> {
      STINT_CO_TRY(const PostgresRows rows, co_await read(query::newest_before, Parameters().number(number)));
      co_return RunNumber{rows.maybe(0, 0).value_or(0)};
    };
    STINT_CO_TRY(const RunNumber top,
                 co_await newest_before(filter.before.value > 0 ? filter.before
                                                                : RunNumber{std::numeric_limits<std::int64_t>::max()}));
    least = RunNumber{std::max<std::int64_t>(1, top.value - kExamineMax + 1)};
    STINT_CO_TRY(const RunNumber rest, co_await newest_before(least));
    if (rest.value > 0) matches.next = RunNumber{rest.value + 1};
  }
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::match, wanted(filter, least)));
  for (int row = 0; row < rows.size(); ++row) {
    matches.runs.push_back({RunNumber{rows.number(row, 0)}, rows.text(row, 1)});
  }
  if (!matches.runs.empty() && matches.runs.size() == filter.most) matches.next = matches.runs.back().number;
  co_return matches;
}

Task<Result<std::vector<Run>>> PostgresStore::with_key(std::string agent, std::string key) {
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::with_key, Parameters().text(agent).text(key)));
  std::vector<Run> runs;
  for (int row = 0; row < rows.size(); ++row) {
    STINT_CO_TRY(runs.emplace_back(), read_whole_run(rows, row));
  }
  co_return runs;
}

Task<Result<std::vector<Event>>> PostgresStore::events(std::string id, std::int64_t after, std::uint32_t most) {
  Parameters parameters;
  parameters.text(id).number(after).number(std::int64_t{most});
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::events, std::move(parameters)));
  std::vector<Event> events;
  for (int row = 0; row < rows.size(); ++row) {
    STINT_CO_TRY(events.emplace_back(), read_event(rows, row));
  }
  co_return events;
}

Task<Result<FeedPage>> PostgresStore::feed(std::string cursor, std::uint32_t most) {
  STINT_CO_TRY(PostgresCursor at, cursor == kFeedNow ? PostgresCursor() : PostgresCursor::read(cursor));
  // Check a cursor that may be ahead before reading its page: a cursor never exceeds what the feed contained when it
  // was returned.
  if (cursor == kFeedNow || at.xid > feed_known_) {
    STINT_CO_TRY(const PostgresRows rows, co_await read(query::feed_now, Parameters()));
    const PostgresCursor now{.xid = static_cast<std::uint64_t>(rows.number(0, 0)), .event = rows.number(0, 1)};
    feed_known_ = std::max(feed_known_, now.xid);
    if (cursor == kFeedNow) co_return FeedPage{{}, now.text()};
    if (at.xid > now.xid) co_return fail(cursor_ahead(cursor));
  }
  Parameters parameters;
  parameters.text(std::to_string(at.xid)).number(at.event).number(std::int64_t{most}).text(at.seen);
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::feed, std::move(parameters)));
  FeedPage page;
  const auto number = [&](int row, int column) { return static_cast<std::uint64_t>(rows.number(row, column)); };
  page.pruned =
      !cursor.empty() && !rows.empty() &&
      std::pair(at.xid, at.event) < std::pair(number(0, kPrunedXidColumn), rows.number(0, kPrunedEventColumn));
  for (int row = 0; row < rows.size() && !page.pruned; ++row) {
    if (rows.is_null(row, kEventColumn)) continue;
    STINT_CO_TRY(Event event, read_event(rows, row));
    at.advance(number(row, kXidColumn), rows.number(row, kEventColumn));
    event.cursor = at.text();
    page.events.push_back(std::move(event));
  }
  page.cursor = at.text();
  co_return page;
}

Task<Result<Output>> PostgresStore::output(std::string id) {
  STINT_CO_TRY(const PostgresRows rows,
               co_await read(query::output, Parameters().text(id).number(std::int64_t{kOutputHeadMax})));
  Output output;
  output.bytes = static_cast<std::uint64_t>(rows.number(0, 0));
  output.head = rows.bytes(0, 1);
  output.tail = rows.bytes(0, 2);
  if (output.tail.size() > kOutputTailMax) output.tail.erase(0, output.tail.size() - kOutputTailMax);
  co_return output;
}

Task<Result<std::vector<std::string>>> PostgresStore::messages(std::string id, std::uint32_t from,
                                                               std::size_t bytes_max) {
  Parameters parameters;
  parameters.text(id).number(std::int64_t{from}).number(static_cast<std::int64_t>(bytes_max));
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::messages, std::move(parameters)));
  std::vector<std::string> messages;
  for (int row = 0; row < rows.size(); ++row) messages.push_back(rows.bytes(row, 0));
  co_return messages;
}

Task<Result<Stats>> PostgresStore::stats() {
  STINT_CO_TRY(const PostgresRows sums, co_await read(query::sums, {}));
  STINT_CO_TRY(const PostgresRows counts, co_await read(query::counts, {}));
  Stats stats;
  STINT_CO_TRY(stats.runs, read_counts(sums));
  stats.ready = static_cast<std::uint64_t>(counts.number(0, 0));
  stats.events = static_cast<std::uint64_t>(counts.number(0, 1));
  stats.nodes = static_cast<std::uint64_t>(counts.number(0, 2));
  stats.bytes = static_cast<std::uint64_t>(counts.number(0, 3));
  co_return stats;
}

Task<Result<std::vector<QueueState>>> PostgresStore::queues() {
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::queues, {}));
  co_return read_queues(rows);
}

Task<Result<std::vector<std::string>>> PostgresStore::check() {
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::wrong_indexes, {}));
  std::vector<std::string> findings;
  for (int row = 0; row < rows.size(); ++row) {
    findings.push_back("the index " + rows.text(row, 0) + " is invalid: run REINDEX INDEX stint." + rows.text(row, 0));
  }
  STINT_CO_TRY(const PostgresRows names, co_await read(query::wrong_names, {}));
  for (int row = 0; row < names.size(); ++row) {
    findings.push_back("run " + names.text(row, 0) + ": a lookup by its id finds another run, or none");
  }
  co_return findings;
}

}  // namespace stint::store
