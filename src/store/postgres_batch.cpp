// Members of PostgresStore: batches.
#include "domain/run_id.hpp"
#include "store/column_codec.hpp"
#include "store/postgres_store.hpp"
#include "store_sql_postgres.hpp"

#include <algorithm>

namespace stint::store {
namespace {

using Texts = std::vector<std::string>;
using Numbers = std::vector<std::optional<std::int64_t>>;
namespace query = postgres::query;

Batch read_batch(const PostgresRows& rows, int row) {
  const auto count = [&](int column) { return static_cast<std::uint64_t>(rows.number(row, column)); };
  Batch batch;
  batch.number = BatchNumber{rows.number(row, 0)};
  batch.id = rows.text(row, 1);
  batch.key = rows.text(row, 2);
  batch.action = parse_batch_action(rows.text(row, 3)).value_or(BatchAction::cancel);
  batch.filter = rows.text(row, 4);
  batch.state = parse_batch_state(rows.text(row, 5)).value_or(BatchState::running);
  batch.matched = count(6);
  batch.done = count(7);
  batch.skipped = count(8);
  batch.failed = count(9);
  batch.node = domain::number_of<NodeNumber>(rows.maybe(row, 10));
  batch.created_at = rows.time(row, 11).value_or(WallTime());
  batch.ended_at = rows.time(row, 12);
  return batch;
}

/// Of the only row, if there is one.
std::optional<BatchClaim> read_batch_claim(const PostgresRows& rows) {
  if (rows.empty()) return std::nullopt;
  BatchClaim claim;
  claim.id = rows.text(0, 0);
  claim.action = parse_batch_action(rows.text(0, 1)).value_or(BatchAction::cancel);
  claim.fence = Fence{rows.number(0, 2)};
  claim.at = static_cast<std::uint64_t>(rows.number(0, 3));
  if (rows.is_null(0, 4)) return claim;
  const std::string ids = rows.text(0, 5);
  const auto skip = static_cast<std::size_t>(rows.number(0, 3) - rows.number(0, 4));
  for (std::size_t from = skip * domain::kRunIdLength; from < ids.size(); from += domain::kRunIdLength) {
    claim.runs.push_back(ids.substr(from, domain::kRunIdLength));
  }
  return claim;
}

}  // namespace

Task<Result<Accepted>> PostgresStore::begin_batch(NewBatch batch) {
  STINT_CO_CHECK(check_batch(batch));
  Numbers places;
  Texts pieces;
  for (std::size_t i = 0; i < batch.runs.size(); ++i) {
    if (i % kBatchStepMax == 0) {
      places.emplace_back(static_cast<std::int64_t>(i));
      pieces.emplace_back();
    }
    pieces.back() += batch.runs[i];
  }
  Parameters parameters;
  parameters.text(batch.id).text(batch.key).text(to_string(batch.action)).text(batch.filter);
  parameters.number(static_cast<std::int64_t>(batch.runs.size())).numbers(places).texts(pieces);
  parameters.number(static_cast<std::int64_t>(kBatchesOpenMax));
  expect(parameters);
  STINT_CO_TRY(const PostgresRows rows, co_await writing_.run(query::begin_batch, std::move(parameters)));
  co_return Accepted{rows.text(0, 0), rows.flag(0, 1)};
}

Task<Result<std::optional<Batch>>> PostgresStore::batch(std::string id) {
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::batch, Parameters().text(id)));
  if (rows.empty()) co_return std::nullopt;
  Batch batch = read_batch(rows, 0);
  STINT_CO_TRY(const PostgresRows failures, co_await read(query::failures, Parameters().number(batch.number)));
  for (int row = 0; row < failures.size(); ++row) {
    batch.failures.push_back({failures.text(row, 0), failures.text(row, 1)});
  }
  co_return std::move(batch);
}

Task<Result<std::vector<Batch>>> PostgresStore::batches(BatchNumber before, std::uint32_t most) {
  STINT_CO_TRY(const PostgresRows rows,
               co_await read(query::batches, Parameters().number(before).number(std::int64_t{most})));
  std::vector<Batch> found;
  for (int row = 0; row < rows.size(); ++row) found.push_back(read_batch(rows, row));
  co_return found;
}

Task<Result<std::optional<BatchClaim>>> PostgresStore::claim_batch(NodeNumber node) {
  STINT_CO_TRY(const PostgresRows any, co_await read(query::has_batch, {}));
  if (!any.flag(0, 0)) co_return std::nullopt;
  STINT_CO_TRY(const PostgresRows rows, co_await writing_.run(query::claim_batch, expect(Parameters().number(node)),
                                                              PostgresClient::Repeat::if_not_done, while_leased(node)));
  co_return read_batch_claim(rows);
}

Task<Result<std::optional<BatchClaim>>> PostgresStore::advance_batch(BatchClaim claim, BatchStep step) {
  Texts runs, errors;
  for (BatchFailure& failure : step.failed) {
    runs.push_back(std::move(failure.run));
    errors.push_back(std::move(failure.error));
  }
  const auto number = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  Parameters parameters;
  parameters.text(claim.id).number(claim.fence).number(number(claim.at)).number(number(step.done));
  parameters.number(number(step.skipped)).texts(runs).texts(errors).number(number(kBatchFailuresMax));
  expect(parameters);
  STINT_CO_TRY(const PostgresRows rows, co_await writing_.run(query::advance_batch, std::move(parameters)));
  co_return read_batch_claim(rows);
}

Task<Result<>> PostgresStore::release_batch(BatchClaim claim) {
  return write(query::release_batch, Parameters().text(claim.id).number(claim.fence));
}

Task<Result<std::optional<Batch>>> PostgresStore::stop_batch(std::string id) {
  STINT_CO_CHECK(co_await write(query::stop_batch, expect(Parameters().text(id))));
  co_return co_await batch(std::move(id));
}

}  // namespace stint::store
