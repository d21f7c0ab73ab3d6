// Members of Ledger: time series of the fleet.
//
// 1. One point per step, however many nodes sample: the first moves the head, and only it counts what happened.
// 2. Counts belong to a step only if the head was at its beginning. Otherwise they are unknown.
// 3. What is counted is never counted again: the head moves with the point, in one step of the store.
#include "store/ledger.hpp"

namespace stint::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

WallTime floor_to(WallTime time, seconds step) { return time - time.time_since_epoch() % milliseconds(step); }
WallTime ceil_to(WallTime time, seconds step) { return floor_to(time + step - milliseconds(1), step); }

}  // namespace

Result<std::optional<SeriesCounts>> Ledger::count_step(std::optional<SeriesHead> head, WallTime at) {
  const seconds step = kSeriesSteps[0].length;
  const bool known = head && head->at == at - step;
  SeriesHead next = head.value_or(SeriesHead());
  const WallTime hour = std::chrono::floor<std::chrono::hours>(clock_.wall());
  STINT_TRY(const Use of_hour, rows_.used_since(hour));
  std::optional<SeriesCounts> counts;
  if (known) {
    STINT_TRY(counts, rows_.count_events(next.event, at - 2 * step));
    STINT_TRY(const Use since, rows_.used_since(next.hour));
    const Use more = advance_use(next, since, hour, of_hour);
    counts->tokens = more.tokens;
    counts->cost_micros = more.cost_micros;
  } else {
    STINT_CHECK(rows_.count_events(next.event, now() + step));  // none: only moves on to the last event
    next.hour = hour;
    next.counted = of_hour;
  }
  next.at = at;
  STINT_CHECK(rows_.put(next));
  return counts;
}

Result<Duration> Ledger::sample(NodeNumber node, const Sample& sample) {
  const seconds step = kSeriesSteps[0].length;
  const WallTime now = this->now(), at = floor_to(now, step);
  STINT_CHECK(rows_.put_pool(node, at, sample));
  STINT_TRY(const Sample pools, rows_.pools(at - step));
  STINT_TRY(const std::optional<SeriesHead> head, rows_.series_head());
  const bool first = !head || head->at < at;
  SeriesPoint fresh{.at = at, .most = with_pool(sample, pools), .samples = first ? 1 : 0};
  if (first) {
    STINT_TRY(fresh.counts, count_step(head, at));
  }
  for (const SeriesStep& each : kSeriesSteps) {
    fresh.at = ceil_to(at, each.length);
    STINT_TRY(const std::optional<SeriesPoint> known, rows_.point(each.length, fresh.at));
    STINT_CHECK(rows_.put(each.length, known ? merged(*known, fresh) : fresh));
    if (first) STINT_CHECK(rows_.forget_points(each.length, fresh.at - each.kept));
  }
  return at + step - now;
}

Result<Series> Ledger::series(const SeriesQuery& query) {
  const auto step = std::chrono::duration_cast<seconds>(query.step);
  const WallTime now = this->now(), from = now - std::chrono::ceil<milliseconds>(query.span);
  Series series;
  series.as_of = clock_.shown(now);
  series.step = step;
  STINT_TRY(series.points, rows_.points(step, from));
  while (!series.points.empty() && series.points.back().at > now) series.points.pop_back();  // not complete yet
  for (SeriesPoint& point : series.points) point.at = clock_.shown(point.at);
  STINT_TRY(std::vector<Event> marks, rows_.fleet_events(from, kMarksMax));
  series.marks = shown(std::move(marks));
  return series;
}

Result<std::vector<EndedRun>> Ledger::ended(const std::string& agent, Duration within, std::uint32_t most) {
  STINT_TRY(const std::optional<AgentRow> row, rows_.agent(agent));
  if (!row) return std::vector<EndedRun>();
  return rows_.ended(row->number, now() - std::chrono::ceil<milliseconds>(within), most);
}

}  // namespace stint::store
