// Members of PostgresStore: families, and deletion of old runs.
#include "store/column_codec.hpp"
#include "store/postgres_store.hpp"
#include "store_sql_postgres.hpp"

namespace stint::store {
namespace {

namespace query = postgres::query;

std::vector<FamilyUse> read_sums(const PostgresRows& rows) {
  std::vector<FamilyUse> sums;
  for (int row = 0; row < rows.size(); ++row) {
    sums.push_back(
        {.head = rows.text(row, 0), .used = {.tokens = rows.number(row, 1), .cost_micros = rows.number(row, 2)}});
  }
  return sums;
}

}  // namespace

Task<Result<std::optional<std::vector<FamilyUse>>>> PostgresStore::report(NodeNumber node, AttemptKey attempt,
                                                                          Use so_far) {
  Parameters parameters;
  parameters.number(node).number(attempt.run).number(attempt.fence).number(so_far.tokens).number(so_far.cost_micros);
  STINT_CO_TRY(const PostgresRows rows, co_await writing_.run(query::report, std::move(parameters),
                                                              PostgresClient::Repeat::always, while_leased(node)));
  if (rows.empty()) co_return std::nullopt;
  co_return read_sums(rows);
}

Task<Result<std::vector<FamilyUse>>> PostgresStore::used(std::vector<std::string> heads) {
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::used, Parameters().texts(heads)));
  co_return read_sums(rows);
}

Task<Result<std::uint64_t>> PostgresStore::prune_if_due(Duration keep, Duration every, std::uint32_t most) {
  Parameters parameters;
  parameters.number(to_ms(keep)).number(to_ms(every)).number(std::int64_t{most});
  expect(parameters);
  STINT_CO_TRY(const std::int64_t forgotten, co_await write_number(query::prune_if_due, std::move(parameters)));
  co_return static_cast<std::uint64_t>(forgotten);
}

}  // namespace stint::store
