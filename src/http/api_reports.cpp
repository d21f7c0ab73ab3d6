// Handlers of time series, one agent, and what was spent.
#include "engine/reports.hpp"
#include "http/api_call.hpp"
#include "wire/reports.hpp"

#include <algorithm>

namespace stint::http {
namespace {

using std::chrono::seconds;

constexpr std::int64_t kTimeMax = 253402300799999;  // the end of the year 9999, in milliseconds
constexpr std::int64_t kSpanMax = store::kSeriesSteps.back().kept.count();
constexpr std::int64_t kPointsMax = 5000, kPointsFew = 500;  // in an answer; and if the server may choose the step

/// The shortest step that is kept so long and does not make the answer long.
seconds step_for(seconds span) {
  for (const store::SeriesStep& each : store::kSeriesSteps) {
    if (span <= each.kept && span / each.length <= kPointsFew) return each.length;
  }
  return store::kSeriesSteps.back().length;
}

Result<store::SeriesQuery> read_query(const Request& request) {
  std::int64_t span = seconds(std::chrono::hours(1)).count();
  const std::int64_t least = store::kSeriesSteps.front().length.count();
  if (const auto given = request.parameter("span_s")) {
    STINT_TRY(span, checked_number<std::int64_t>("span_s", *given, least, kSpanMax));
  }
  seconds step = step_for(seconds(span));
  if (const auto given = request.parameter("step_s")) {
    const auto number = parse_number<std::int64_t>(*given);
    const auto found = std::ranges::find(store::kSeriesSteps, number.value_or(0),
                                         [](const store::SeriesStep& each) { return each.length.count(); });
    if (found == store::kSeriesSteps.end()) {
      return fail(Errc::invalid, fmt::format("'step_s' must be 10, 60 or 3600, not '{}'", agent::excerpt(*given)));
    }
    step = found->length;
  }
  if (seconds(span) < step) {
    return fail(Errc::invalid, fmt::format("'span_s' must be at least one step of {} seconds", step.count()));
  }
  if (seconds(span) / step > kPointsMax) {
    return fail(Errc::invalid, fmt::format("'span_s' has more than {} steps of {} seconds: take a larger 'step_s'",
                                           kPointsMax, step.count()));
  }
  return store::SeriesQuery{.step = step, .span = seconds(span)};
}

}  // namespace

Task<Response> Api::series(Call call) {
  const auto query = read_query(call.request);
  if (!query) co_return problem(query.error());
  const auto series = co_await fleet_.series(*query);
  co_return series ? json_response(wire::to_json(*series, query->span)) : problem(series.error());
}

Task<Response> Api::agent(Call call) {
  const auto found = co_await fleet_.agent(call.id);
  if (!found) co_return problem(found.error());
  if (!*found) co_return no_such("there is no agent '" + shown(call.id) + "'", "/v1/agents");
  co_return json_response(wire::to_json(**found));
}

Task<Response> Api::cost(Call call) {
  engine::CostQuery query{.agent = true};
  if (const auto by = call.request.parameter("by")) {
    const auto read = wire::read_cost_by(*by);
    if (!read) co_return problem(read.error());
    query = *read;
  }
  const auto since = call.number<std::int64_t>("since_at", 0, 0, kTimeMax);
  if (!since) co_return problem(since.error());
  query.since = WallTime(std::chrono::milliseconds(*since));
  const auto report = co_await fleet_.cost(query);
  co_return report ? json_response(wire::to_json(*report)) : problem(report.error());
}

}  // namespace stint::http
