// Members of PostgresStore: time series, and sums by hour.
#include "store/column_codec.hpp"
#include "store/postgres_read.hpp"
#include "store/postgres_store.hpp"
#include "store/series.hpp"
#include "store_sql_postgres.hpp"

namespace stint::store {
namespace {

namespace query = postgres::query;

constexpr std::int64_t kHoursOfDay = 24;

SeriesPoint read_point(const PostgresRows& rows, int row) {
  SeriesPoint point;
  point.at = rows.time(row, 0).value_or(WallTime());
  point.most = {.startable = rows.number(row, 1),
                .held = rows.number(row, 2),
                .running = rows.number(row, 3),
                .busy = rows.number(row, 4),
                .workers = rows.number(row, 5)};
  point.samples = rows.number(row, 6);
  if (rows.is_null(row, 7)) return point;
  point.counts = {.started = rows.number(row, 7),
                  .succeeded = rows.number(row, 8),
                  .failed = rows.number(row, 9),
                  .cancelled = rows.number(row, 10),
                  .expired = rows.number(row, 11),
                  .in_doubt = rows.number(row, 12),
                  .tokens = rows.number(row, 13),
                  .cost_micros = rows.number(row, 14)};
  return point;
}

}  // namespace

Task<Result<Duration>> PostgresStore::sample(NodeNumber node, Sample sample) {
  Parameters parameters;
  parameters.number(node).number(sample.startable).number(sample.held).number(sample.running);
  expect(parameters.number(sample.busy).number(sample.workers));
  STINT_CO_TRY(const PostgresRows rows,
               co_await writing_.run(query::sample, std::move(parameters), PostgresClient::Repeat::always));
  co_return std::chrono::milliseconds(rows.number(0, 0));
}

Task<Result<Series>> PostgresStore::series(SeriesQuery query) {
  const std::int64_t span_ms = to_ms(query.span);
  Series series;
  series.step = query.step;
  Parameters parameters;
  parameters.number(std::chrono::duration_cast<std::chrono::seconds>(query.step).count()).number(span_ms);
  expect(parameters);
  STINT_CO_TRY(const PostgresRows points, co_await read(query::series, std::move(parameters)));
  series.as_of = points.time(0, 0).value_or(WallTime());
  for (int row = 1; row < points.size(); ++row) series.points.push_back(read_point(points, row));
  Parameters of_marks;
  of_marks.number(span_ms).number(std::int64_t{kMarksMax});
  expect(of_marks);
  STINT_CO_TRY(const PostgresRows marks, co_await read(query::marks, std::move(of_marks)));
  for (int row = 0; row < marks.size(); ++row) {
    STINT_CO_TRY(series.marks.emplace_back(), read_event(marks, row));
  }
  co_return series;
}

Task<Result<std::vector<EndedRun>>> PostgresStore::ended(std::string agent, Duration within, std::uint32_t most) {
  Parameters parameters;
  parameters.text(agent).number(to_ms(within)).number(std::int64_t{most});
  expect(parameters);
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::ended, std::move(parameters)));
  std::vector<EndedRun> found;
  for (int row = 0; row < rows.size(); ++row) {
    STINT_CO_TRY(const domain::RunState state, read_state(rows.text(row, 0)));
    found.push_back({.state = state,
                     .attempt = static_cast<std::uint32_t>(rows.number(row, 1)),
                     .created_at = rows.time(row, 2).value_or(WallTime()),
                     .finished_at = rows.time(row, 3).value_or(WallTime()),
                     .started_at = rows.time(row, 4)});
  }
  co_return found;
}

Task<Result<std::vector<Spent>>> PostgresStore::spent(WallTime since, SpentBy by) {
  Parameters parameters;
  parameters.time(since).number(by == SpentBy::hour ? 1 : kHoursOfDay);
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::spent, std::move(parameters)));
  std::vector<Spent> found;
  for (int row = 0; row < rows.size(); ++row) {
    const std::int64_t hour = rows.number(row, 0);
    found.push_back({.day = day_of(WallTime(std::chrono::hours(hour))),
                     .hour = static_cast<std::uint32_t>(hour % kHoursOfDay),
                     .agent = rows.text(row, 1),
                     .runs = rows.number(row, 2),
                     .tokens = rows.number(row, 3),
                     .cost_micros = rows.number(row, 4)});
  }
  co_return found;
}

}  // namespace stint::store
