// Members of SqliteRows: time series, and sums by hour.
#include "store/column_codec.hpp"
#include "store/sqlite_rows.hpp"
#include "store_sql_sqlite.hpp"

namespace stint::store {
namespace {

namespace query = sqlite::query;
using std::chrono::hours;
using std::chrono::seconds;

constexpr std::int64_t kHoursOfDay = 24;

/// The columns of `points`.
SeriesPoint read_point(const Query& query) {
  SeriesPoint point;
  point.at = query.time(0).value_or(WallTime());
  point.most = {.startable = query.number(1),
                .held = query.number(2),
                .running = query.number(3),
                .busy = query.number(4),
                .workers = query.number(5)};
  point.samples = query.number(6);
  if (query.is_null(7)) return point;
  point.counts = {.started = query.number(7),
                  .succeeded = query.number(8),
                  .failed = query.number(9),
                  .cancelled = query.number(10),
                  .expired = query.number(11),
                  .in_doubt = query.number(12),
                  .tokens = query.number(13),
                  .cost_micros = query.number(14)};
  return point;
}

}  // namespace

Result<std::optional<SeriesHead>> SqliteRows::series_head() {
  Query query(database_, query::series_head);
  std::optional<SeriesHead> head;
  if (query.next()) {
    head = {.at = query.time(0).value_or(WallTime()),
            .event = query.number(1),
            .hour = WallTime(hours(query.number(2))),
            .counted = {.tokens = query.number(3), .cost_micros = query.number(4)}};
  }
  STINT_CHECK(query.end());
  return head;
}

Result<> SqliteRows::put(const SeriesHead& head) {
  Query query(database_, query::put_series_head);
  query.bind(1, head.at).bind(2, head.event).bind(3, hour_of(head.hour));
  return query.bind(4, head.counted.tokens).bind(5, head.counted.cost_micros).run();
}

Result<std::optional<SeriesPoint>> SqliteRows::point(seconds step, WallTime at) {
  Query query(database_, query::point);
  query.bind(1, std::int64_t{step.count()}).bind(2, at);
  std::optional<SeriesPoint> found;
  if (query.next()) found = read_point(query);
  STINT_CHECK(query.end());
  return found;
}

Result<> SqliteRows::put(seconds step, const SeriesPoint& point) {
  Query query(database_, query::put_point);
  query.bind(1, std::int64_t{step.count()}).bind(2, point.at).bind(3, point.most.startable).bind(4, point.most.held);
  query.bind(5, point.most.running).bind(6, point.most.busy).bind(7, point.most.workers).bind(8, point.samples);
  const auto count = [&](int at, std::int64_t SeriesCounts::* member) {
    query.bind(at, point.counts ? std::optional((*point.counts).*member) : std::nullopt);
  };
  count(9, &SeriesCounts::started);
  count(10, &SeriesCounts::succeeded);
  count(11, &SeriesCounts::failed);
  count(12, &SeriesCounts::cancelled);
  count(13, &SeriesCounts::expired);
  count(14, &SeriesCounts::in_doubt);
  count(15, &SeriesCounts::tokens);
  count(16, &SeriesCounts::cost_micros);
  return query.run();
}

Result<> SqliteRows::forget_points(seconds step, WallTime until) {
  Query query(database_, query::forget_points);
  return query.bind(1, std::int64_t{step.count()}).bind(2, until).run();
}

Result<std::vector<SeriesPoint>> SqliteRows::points(seconds step, WallTime after) {
  Query query(database_, query::points);
  query.bind(1, std::int64_t{step.count()}).bind(2, after);
  std::vector<SeriesPoint> found;
  while (query.next()) found.push_back(read_point(query));
  STINT_CHECK(query.end());
  return found;
}

Result<> SqliteRows::put_pool(NodeNumber node, WallTime at, const Sample& sample) {
  {
    Query query(database_, query::forget_pools);
    STINT_CHECK(query.run());
  }
  Query query(database_, query::put_pool);
  return query.bind(1, node).bind(2, at).bind(3, sample.busy).bind(4, sample.workers).run();
}

Result<Sample> SqliteRows::pools(WallTime from) {
  Query query(database_, query::pools);
  query.bind(1, from);
  Sample sum;
  if (query.next()) sum = {.busy = query.number(0), .workers = query.number(1)};
  STINT_CHECK(query.end());
  return sum;
}

Result<SeriesCounts> SqliteRows::count_events(std::int64_t& after, WallTime from) {
  Query query(database_, query::count_step);
  query.bind(1, after).bind(2, from);
  SeriesCounts counts;
  if (query.next()) {
    counts = {.started = query.number(1),
              .succeeded = query.number(2),
              .failed = query.number(3),
              .cancelled = query.number(4),
              .expired = query.number(5),
              .in_doubt = query.number(6)};
    after = query.number(0);
  }
  STINT_CHECK(query.end());
  return counts;
}

Result<std::vector<Event>> SqliteRows::fleet_events(WallTime from, std::size_t most) {
  Query query(database_, query::fleet_events);
  query.bind(1, from).bind(2, static_cast<std::int64_t>(most));
  std::vector<Event> found;
  while (query.next()) {
    Event& event = found.emplace_back();
    event.seq = query.number(0);
    event.node = query.maybe<NodeNumber>(1);
    event.cause = query.text(2);
    event.data = query.text(3);
    event.at = query.time(4).value_or(WallTime());
  }
  STINT_CHECK(query.end());
  return found;
}

Result<std::vector<EndedRun>> SqliteRows::ended(AgentNumber agent, WallTime from, std::size_t most) {
  Query query(database_, query::ended);
  query.bind(1, agent).bind(2, from).bind(3, static_cast<std::int64_t>(most));
  std::vector<EndedRun> found;
  while (query.next()) {
    const auto state = domain::parse_run_state(query.text(0));
    if (!state) return fail(Errc::failed, "a finished run has the state '" + query.text(0) + "'");
    found.push_back({.state = *state,
                     .attempt = static_cast<std::uint32_t>(query.number(1)),
                     .created_at = query.time(2).value_or(WallTime()),
                     .finished_at = query.time(3).value_or(WallTime()),
                     .started_at = query.time(4)});
  }
  STINT_CHECK(query.end());
  return found;
}

Result<Use> SqliteRows::used_on(WallTime day) {
  const std::int64_t first = hour_of(std::chrono::floor<std::chrono::days>(day));
  Query query(database_, query::used_between);
  query.bind(1, first).bind(2, first + kHoursOfDay);
  Use sum;
  if (query.next()) sum = {.tokens = query.number(0), .cost_micros = query.number(1)};
  STINT_CHECK(query.end());
  return sum;
}

Result<Use> SqliteRows::used_since(WallTime hour) {
  Query query(database_, query::used_between);
  query.bind(1, hour_of(hour)).bind(2, std::numeric_limits<std::int64_t>::max());
  Use sum;
  if (query.next()) sum = {.tokens = query.number(0), .cost_micros = query.number(1)};
  STINT_CHECK(query.end());
  return sum;
}

Result<> SqliteRows::merge_hours(WallTime before) {
  const std::int64_t end = hour_of(std::chrono::floor<std::chrono::days>(before));
  {
    Query query(database_, query::merge_hours);
    STINT_CHECK(query.bind(1, end).run());
  }
  Query query(database_, query::forget_hours);
  return query.bind(1, end).run();
}

Result<std::vector<Spent>> SqliteRows::spent(WallTime since, SpentBy by) {
  const std::int64_t length = by == SpentBy::hour ? 1 : kHoursOfDay;
  const WallTime day = std::chrono::floor<std::chrono::days>(since);
  Query query(database_, query::spent);
  query.bind(1, hour_of(by == SpentBy::hour ? since : day)).bind(2, length);
  std::vector<Spent> found;
  while (query.next()) {
    const std::int64_t hour = query.number(0) * length;
    found.push_back({.day = day_of(WallTime(hours(hour))),
                     .hour = static_cast<std::uint32_t>(hour % kHoursOfDay),
                     .agent = query.text(1),
                     .runs = query.number(2),
                     .tokens = query.number(3),
                     .cost_micros = query.number(4)});
  }
  STINT_CHECK(query.end());
  return found;
}

}  // namespace stint::store
