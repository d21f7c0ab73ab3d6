// Members of PostgresStore: the state of limits, and why runs wait for them.
#include "store/column_codec.hpp"
#include "store/postgres_read.hpp"
#include "store/postgres_store.hpp"
#include "store_sql_postgres.hpp"

#include <algorithm>

namespace stint::store {
namespace {

namespace query = postgres::query;

std::uint32_t weight_at(const PostgresRows& rows, int row, int column) {
  return static_cast<std::uint32_t>(rows.number(row, column));
}

/// Columns from `column` on: id, agent, weight, since.
LimitHolder read_holder(const PostgresRows& rows, int row, int column) {
  return {.run = rows.text(row, column),
          .agent = rows.text(row, column + 1),
          .weight = weight_at(rows, row, column + 2),
          .since = rows.time(row, column + 3).value_or(WallTime())};
}

LimitState read_limit(const PostgresRows& rows, int row) {
  LimitState state;
  state.name = rows.text(row, 0);
  state.capacity = small(rows.maybe(row, 1));
  state.units = rows.number(row, 2);
  state.runs = rows.number(row, 3);
  state.paused = rows.flag(row, 4);
  state.paused_until = rows.time(row, 5);
  state.ramp = small(rows.maybe(row, 6));
  state.paused_for = to_duration(rows.maybe(row, 7));
  state.waiting = static_cast<std::uint64_t>(rows.number(row, 8));
  state.turn_of = rows.text(row, 9);
  return state;
}

Result<Why> read_why(const PostgresRows& rows, int row) {
  const std::string name = rows.text(row, 0);
  const std::optional<domain::WaitCause> cause = domain::parse_wait_cause(name);
  if (!cause)
    return fail(Errc::failed, "the database returned the unknown reason '" + name +
                                  "': a newer Stint created it. Upgrade this Stint");
  Why why;
  why.cause = *cause;
  why.limit = rows.text(row, 1);
  why.until = rows.time(row, 2);
  why.capacity = small(rows.maybe(row, 3));
  why.held = rows.maybe(row, 4).value_or(0);
  why.weight = small(rows.maybe(row, 5)).value_or(1);
  why.ramp = small(rows.maybe(row, 6));
  why.turn_of = rows.text(row, 7);
  why.behind = rows.text(row, 8);
  if (!rows.is_null(row, 9)) {
    STINT_TRY(why.behind_state, read_state(rows.text(row, 9)));
  }
  why.place = rows.maybe(row, 10);
  why.ahead = small(rows.maybe(row, 11));
  return why;
}
constexpr int kListedColumn = 10,
              kHolderColumn = 12;  // where the listed holders of a limit begin, in limits() and why()

}  // namespace

std::vector<LimitState> read_limits(const PostgresRows& rows) {
  std::vector<LimitState> found;
  for (int row = 0; row < rows.size(); ++row) {
    if (found.empty() || found.back().name != rows.text(row, 0)) found.push_back(read_limit(rows, row));
    if (rows.is_null(row, kListedColumn)) continue;
    LimitHolder each = read_holder(rows, row, kListedColumn + 1);
    if (rows.flag(row, kListedColumn)) {
      found.back().holders.push_back(std::move(each));
    } else {
      found.back().line.push_back({std::move(each.run), std::move(each.agent), each.weight, each.since});
    }
  }
  return found;
}

Task<Result<std::vector<LimitState>>> PostgresStore::limits(std::uint32_t listed) {
  const std::int64_t most = std::min(listed, kLimitListMax);
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::limits, Parameters().number(most)));
  co_return read_limits(rows);
}

Task<Result<std::vector<Why>>> PostgresStore::why(std::string id) {
  Parameters parameters;
  parameters.text(id).number(std::int64_t{kLimitListMax}).number(kPlaceMax);
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::why, expect(std::move(parameters))));
  std::vector<Why> reasons;
  for (int row = 0; row < rows.size(); ++row) {
    STINT_CO_TRY(Why why, read_why(rows, row));
    const bool again = !reasons.empty() && reasons.back().cause == why.cause && reasons.back().limit == why.limit;
    if (!again) reasons.push_back(std::move(why));
    if (!rows.is_null(row, kHolderColumn)) reasons.back().holders.push_back(read_holder(rows, row, kHolderColumn));
  }
  co_return reasons;
}

}  // namespace stint::store
