// Members of PostgresStore: transfer runs to and from another store.
#include "store/column_codec.hpp"
#include "store/postgres_load.hpp"
#include "store/postgres_read.hpp"
#include "store/postgres_store.hpp"
#include "store/record.hpp"
#include "store_sql_postgres.hpp"

#include <map>
#include <set>

namespace stint::store {
namespace {

using std::chrono::milliseconds;
namespace query = postgres::query;

}  // namespace

Task<Result<std::uint64_t>> PostgresStore::prune(Duration older_than, std::uint32_t most) {
  STINT_CO_TRY(
      const std::int64_t forgotten,
      co_await write_number(query::prune, expect(Parameters().number(to_ms(older_than)).number(std::int64_t{most}))));
  co_return static_cast<std::uint64_t>(forgotten);
}

Task<Result<std::vector<AgentEntry>>> PostgresStore::agents() {
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::agents, {}));
  std::vector<AgentEntry> agents;
  for (int row = 0; row < rows.size(); ++row) {  // one row per limit, or one
    if (agents.empty() || agents.back().name != rows.text(row, 0)) {
      const auto number = [&](int column) { return static_cast<std::uint32_t>(rows.number(row, column)); };
      agents.push_back({.name = rows.text(row, 0),
                        .limits = {},
                        .queued_max = number(1),
                        .attempts_max = number(2),
                        .lost_max = number(3)});
    }
    if (rows.is_null(row, 4)) continue;
    agents.back().limits.push_back({rows.text(row, 4), static_cast<std::uint32_t>(rows.number(row, 5))});
  }
  co_return agents;
}

/// Shortens the page so that all conversations of it fit into memory. The first run always stays.
Task<Result<>> PostgresStore::cut_at_conversations(std::vector<RunRecord>& records) {
  const auto range = Parameters().number(records.front().run.number).number(records.back().run.number);
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::dump_message_bytes, range));
  std::int64_t bytes = 0;
  for (int row = 0; row < rows.size(); ++row) {
    bytes += rows.number(row, 1);
    if (bytes <= std::int64_t{kConversationMax}) continue;
    std::erase_if(records, [&, first = records.front().run.number](const RunRecord& record) {
      return record.run.number != first && record.run.number.value >= rows.number(row, 0);
    });
    break;
  }
  co_return Result<>();
}

Task<Result<std::vector<RunRecord>>> PostgresStore::dump(RunNumber after, std::uint32_t most) {
  std::vector<RunRecord> records;
  std::map<RunNumber, std::size_t> places;
  STINT_CO_TRY(const PostgresRows runs,
               co_await read(query::dump, Parameters().number(after).number(std::int64_t{most})));
  for (int row = 0; row < runs.size(); ++row) {
    RunRecord record;
    STINT_CO_TRY(record.run, read_whole_run(runs, row));
    int column = kResultColumn + 1;
    record.rank = runs.number(row, column++);
    record.budget = to_duration(runs.maybe(row, column++));
    record.budget_left = to_duration(runs.maybe(row, column++));
    record.budget_until = runs.time(row, column++);
    record.parked_on = runs.text(row, column++);
    places.emplace(record.run.number, records.size());
    records.push_back(std::move(record));
  }
  if (records.empty()) co_return records;
  STINT_CO_CHECK(co_await cut_at_conversations(records));
  const auto range = [&] { return Parameters().number(records.front().run.number).number(records.back().run.number); };
  STINT_CO_TRY(const PostgresRows events, co_await read(query::dump_events, range()));
  for (int row = 0; row < events.size(); ++row) {
    const auto place = places.find(RunNumber{events.number(row, 1)});
    if (place == places.end()) continue;  // submitted since
    STINT_CO_TRY(Event event, read_event(events, row));
    records[place->second].events.push_back(std::move(event));
  }
  STINT_CO_TRY(const PostgresRows families, co_await read(query::dump_families, range()));
  for (int row = 0; row < families.size(); ++row) {
    const auto place = places.find(RunNumber{families.number(row, 0)});
    if (place == places.end()) continue;
    const Use used{.tokens = families.number(row, 2), .cost_micros = families.number(row, 3)};
    records[place->second].families.push_back({.head = families.text(row, 1), .used = used});
  }
  STINT_CO_TRY(const PostgresRows messages, co_await read(query::dump_messages, range()));
  for (int row = 0; row < messages.size(); ++row) {
    const auto place = places.find(RunNumber{messages.number(row, 0)});
    if (place != places.end()) records[place->second].conversation.push_back(messages.bytes(row, 1));
  }
  STINT_CO_TRY(const PostgresRows chunks, co_await read(query::dump_output, range()));
  for (int row = 0; row < chunks.size(); ++row) {
    const auto place = places.find(RunNumber{chunks.number(row, 0)});
    if (place == places.end()) continue;
    Output& output = records[place->second].output;
    output.bytes = static_cast<std::uint64_t>(chunks.number(row, 1));
    (chunks.number(row, 2) < std::int64_t{kOutputHeadMax} ? output.head : output.tail) += chunks.bytes(row, 3);
  }
  for (RunRecord& record : records) {
    std::string& tail = record.output.tail;
    if (tail.size() > kOutputTailMax) tail.erase(0, tail.size() - kOutputTailMax);
  }
  co_return records;
}

Task<Result<std::uint64_t>> PostgresStore::load(std::vector<RunRecord> records) {
  PostgresLoad load;
  std::set<std::string_view> ids;
  for (const RunRecord& record : records) {
    STINT_CO_CHECK(check_record(record));
    if (ids.insert(record.run.id).second) load.add(record);
  }
  if (records.empty()) co_return 0;
  STINT_CO_TRY(const PostgresRows rows,
               co_await writing_.run(query::load, load.parameters(), PostgresClient::Repeat::always));
  notification_.notify();
  co_return static_cast<std::uint64_t>(rows.number(0, 0));
}

}  // namespace stint::store
