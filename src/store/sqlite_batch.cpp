// Members of SqliteRows: batches.
#include "domain/run_id.hpp"
#include "store/sqlite_rows.hpp"
#include "store_sql_sqlite.hpp"

#include <algorithm>

namespace stint::store {
namespace {

namespace query = sqlite::query;

std::int64_t signed_of(std::uint64_t value) { return static_cast<std::int64_t>(value); }

std::optional<BatchRow> first_of(std::vector<BatchRow> rows) {
  if (rows.empty()) return std::nullopt;
  return std::move(rows.front());
}

}  // namespace

Result<std::vector<BatchRow>> SqliteRows::read_batches(Query& query) {
  std::vector<BatchRow> found;
  while (query.next()) {
    BatchRow& row = found.emplace_back();
    Batch& batch = row.batch;
    const auto count = [&](int column) { return static_cast<std::uint64_t>(query.number(column)); };
    batch.number = BatchNumber{query.number(0)};
    batch.id = query.text(1);
    batch.key = query.text(2);
    batch.action = parse_batch_action(query.text(3)).value_or(BatchAction::cancel);
    batch.filter = query.text(4);
    batch.state = parse_batch_state(query.text(5)).value_or(BatchState::running);
    batch.matched = count(6);
    batch.done = count(7);
    batch.skipped = count(8);
    batch.failed = count(9);
    batch.node = query.maybe<NodeNumber>(10);
    row.fence = Fence{query.number(11)};
    batch.created_at = query.time(12).value_or(WallTime());
    batch.ended_at = query.time(13);
  }
  STINT_CHECK(query.end());
  return found;
}

Result<std::optional<BatchRow>> SqliteRows::batch(std::string_view id) {
  Query query(database_, query::batch);
  query.bind(1, id);
  STINT_TRY(std::vector<BatchRow> rows, read_batches(query));
  return first_of(std::move(rows));
}

Result<std::optional<BatchRow>> SqliteRows::batch_of_key(std::string_view key) {
  Query query(database_, query::batch_of_key);
  query.bind(1, key);
  STINT_TRY(std::vector<BatchRow> rows, read_batches(query));
  return first_of(std::move(rows));
}

Result<std::vector<BatchRow>> SqliteRows::batches(BatchNumber before, std::size_t most) {
  Query query(database_, query::batches);
  query.bind(1, before).bind(2, static_cast<std::int64_t>(most));
  return read_batches(query);
}

Result<std::vector<BatchRow>> SqliteRows::open_batches() {
  Query query(database_, query::open_batches);
  return read_batches(query);
}

Result<> SqliteRows::add(const BatchRow& row, const std::vector<std::string>& runs) {
  const Batch& batch = row.batch;
  BatchNumber number{};
  {
    Query query(database_, query::add_batch);
    query.bind(1, batch.id).bind_some(2, batch.key).bind(3, to_string(batch.action)).bind(4, batch.filter);
    query.bind(5, to_string(batch.state)).bind(6, signed_of(batch.matched)).bind(7, batch.created_at);
    query.bind(8, batch.ended_at);
    if (query.next()) number = BatchNumber{query.number(0)};
    STINT_CHECK(query.run());
  }
  for (std::size_t at = 0; at < runs.size(); at += kBatchStepMax) {
    std::string ids;
    for (std::size_t i = at; i < std::min(at + kBatchStepMax, runs.size()); ++i) ids += runs[i];
    Query query(database_, query::add_batch_runs);
    STINT_CHECK(query.bind(1, number).bind(2, static_cast<std::int64_t>(at)).bind(3, ids).run());
  }
  return {};
}

Result<> SqliteRows::put(const BatchRow& row) {
  const Batch& batch = row.batch;
  Query query(database_, query::put_batch);
  query.bind(1, batch.number).bind(2, to_string(batch.state)).bind(3, signed_of(batch.done));
  query.bind(4, signed_of(batch.skipped)).bind(5, signed_of(batch.failed)).bind(6, batch.node);
  return query.bind(7, row.fence).bind(8, batch.ended_at).run();
}

Result<std::vector<std::string>> SqliteRows::batch_runs(BatchNumber batch, std::uint64_t at) {
  Query query(database_, query::batch_runs);
  query.bind(1, batch).bind(2, signed_of(at));
  std::vector<std::string> runs;
  if (query.next()) {
    const std::string ids = query.text(1);
    for (std::size_t from = (at - static_cast<std::uint64_t>(query.number(0))) * domain::kRunIdLength;
         from < ids.size(); from += domain::kRunIdLength) {
      runs.push_back(ids.substr(from, domain::kRunIdLength));
    }
  }
  STINT_CHECK(query.run());
  return runs;
}

Result<> SqliteRows::add_failure(BatchNumber batch, std::uint64_t at, const BatchFailure& failure) {
  Query query(database_, query::add_failure);
  return query.bind(1, batch).bind(2, signed_of(at)).bind(3, failure.run).bind(4, failure.error).run();
}

Result<std::vector<BatchFailure>> SqliteRows::failures(BatchNumber batch) {
  Query query(database_, query::failures);
  query.bind(1, batch);
  std::vector<BatchFailure> found;
  while (query.next()) found.push_back({query.text(0), query.text(1)});
  STINT_CHECK(query.end());
  return found;
}

Result<std::vector<BatchNumber>> SqliteRows::batches_ended_before(WallTime time, std::size_t most) {
  Query query(database_, query::batches_ended_before);
  query.bind(1, time).bind(2, static_cast<std::int64_t>(most));
  std::vector<BatchNumber> found;
  while (query.next()) found.emplace_back(query.number(0));
  STINT_CHECK(query.end());
  return found;
}

Result<> SqliteRows::forget(BatchNumber batch) {
  for (const std::string_view statement : {query::forget_batch, query::forget_batch_runs, query::forget_failures}) {
    Query query(database_, statement);
    STINT_CHECK(query.bind(1, batch).run());
  }
  return {};
}

}  // namespace stint::store
