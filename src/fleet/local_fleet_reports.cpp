// Members of LocalFleet: time series, statistics of agents, and what was spent.
#include "engine/reports.hpp"
#include "fleet/local_fleet.hpp"
#include "store/column_codec.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace stint::fleet {
namespace {

using namespace std::chrono_literals;
using domain::RunState;

constexpr std::uint32_t kRunsPage = 500;

/// The definition with the defaults of the settings.
domain::Agent completed(const project::AgentSpec& spec) {
  domain::Agent agent = spec.agent;
  agent.budget = spec.budget;
  agent.retry = {.base = spec.backoff.base, .cap = spec.backoff.cap};
  agent.on_crash = spec.on_crash;
  return agent;
}

}  // namespace

Task<Result<store::Series>> LocalFleet::series(store::SeriesQuery query) { return parts_.store.series(query); }

/// From the same look as the first page, so that the chart's last point and the numbers above it agree.
Task<Result<store::Sample>> LocalFleet::observe() {
  STINT_CO_TRY(const engine::FleetView view, co_await look(Detail::summary));
  const auto count = [&](RunState state) {
    const auto found = view.stats.runs.find(state);
    return found == view.stats.runs.end() ? 0 : static_cast<std::int64_t>(found->second);
  };
  store::Sample sample;
  sample.startable = static_cast<std::int64_t>(view.queue.startable);
  sample.held = std::max<std::int64_t>(0, count(RunState::queued) - sample.startable);
  sample.running = count(RunState::running);
  if (!view.pool) co_return sample;
  sample.workers = static_cast<std::int64_t>(view.pool->pool_size);
  sample.busy = std::llround(view.pool->utilization * static_cast<double>(view.pool->pool_size));
  co_return sample;
}

std::vector<agent::Problem> LocalFleet::agent_problems() const {
  return options_.snapshot ? options_.snapshot()->catalogue.problems : std::vector<agent::Problem>();
}

Task<Result<std::optional<engine::AgentDetail>>> LocalFleet::agent(std::string name) {
  const auto snapshot = options_.snapshot ? options_.snapshot() : nullptr;
  engine::AgentDetail detail;
  detail.name = name;
  if (snapshot) detail.problems = project::problems_of(name, snapshot->catalogue, {});
  const auto found = parts_.registry().find(name);
  const bool known = found != parts_.registry().end() && !found->second.gone;
  if (known) {
    detail.definition = completed(found->second);
    if (found->second.refused) detail.refused = found->second.refused->describe();
  }
  STINT_CO_TRY(const std::vector<store::AgentEntry> entries, co_await parts_.store.agents());
  std::set<std::string> names;  // the agent and its variants
  for (const store::AgentEntry& entry : entries) {
    if (project::agent_of(entry.name) == name) names.insert(entry.name);
  }
  const bool broken =
      snapshot && std::ranges::find(snapshot->catalogue.broken, name) != snapshot->catalogue.broken.end();
  if (!known && !broken && names.empty()) co_return std::nullopt;
  if (!known) detail.refused = broken ? "its file has errors" : "its file is gone";
  detail.as_of = parts_.system.wall_now();
  STINT_CO_TRY(detail.day, co_await look_at_day(std::move(names)));
  store::Filter failed;
  failed.states = {RunState::failed, RunState::expired};
  failed.agent = name;
  failed.most = engine::kAgentFailuresMax;
  STINT_CO_TRY(detail.day.failures, co_await list(std::move(failed)));
  co_return std::move(detail);
}

Task<Result<engine::AgentDay>> LocalFleet::look_at_day(std::set<std::string> names) {
  engine::AgentDay day;
  std::vector<store::EndedRun> ended;
  for (const std::string& each : names) {
    STINT_CO_TRY(std::vector<store::EndedRun> more,
                 co_await parts_.store.ended(each, engine::kStatisticsSpan, store::kEndedRunsMax));
    std::ranges::move(more, std::back_inserter(ended));
  }
  day.ended = store::summarize(ended);
  const WallTime since = parts_.system.wall_now() - std::chrono::hours(23);  // with the present one, 24 hours
  STINT_CO_TRY(const std::vector<store::Spent> spent, co_await parts_.store.spent(since, store::SpentBy::hour));
  for (const store::Spent& each : spent) {
    if (!names.contains(each.agent)) continue;
    const bool same = !day.hours.empty() && day.hours.back().day == each.day && day.hours.back().hour == each.hour;
    store::Spent& sum = same ? day.hours.back() : day.hours.emplace_back();
    sum.day = each.day;
    sum.hour = each.hour;
    sum.runs += each.runs;
    sum.tokens += each.tokens;
    sum.cost_micros += each.cost_micros;
    day.used += {.tokens = each.tokens, .cost_micros = each.cost_micros, .attempts = each.runs};
  }
  co_return day;
}

Task<Result<engine::CostReport>> LocalFleet::cost(engine::CostQuery query) {
  engine::CostReport report;
  report.since = query.since;
  report.as_of = parts_.system.wall_now();
  if (query.run) {
    STINT_CO_CHECK(co_await add_runs(query, report));
  } else {
    STINT_CO_TRY(const std::vector<store::Spent> spent, co_await parts_.store.spent(query.since));
    std::map<std::pair<std::string, std::string>, engine::CostLine> sums;
    for (const store::Spent& each : spent) {
      const std::string agent(query.agent ? project::agent_of(each.agent) : std::string_view());
      engine::CostLine& line = sums[{query.day ? each.day : std::string(), agent}];
      line.day = query.day ? each.day : std::string();
      line.agent = agent;
      line.attempts += each.runs;
      line.tokens += each.tokens;
      line.cost_micros += each.cost_micros;
    }
    for (auto& [key, line] : sums) report.lines.push_back(std::move(line));
  }
  for (const engine::CostLine& line : report.lines) {
    report.total += {.tokens = line.tokens, .cost_micros = line.cost_micros, .attempts = line.attempts};
  }
  co_return report;
}

/// Runs are listed newest first, and their times of submission may differ from that order by a clock that was set: the
/// listing ends at the first page without a run that is new enough.
Task<Result<>> LocalFleet::add_runs(const engine::CostQuery& query, engine::CostReport& report) {
  store::Filter filter;
  filter.most = kRunsPage;
  while (true) {
    STINT_CO_TRY(const std::vector<RunView> page, co_await list(filter));
    bool any = false;
    for (const RunView& view : page) {
      if (view.run.created_at < query.since) continue;
      any = true;
      if (report.lines.size() >= engine::kCostRunsMax) {
        report.complete = false;
        co_return Result<>();
      }
      report.lines.push_back({.agent = query.agent ? view.run.agent : std::string(),
                              .day = query.day ? store::day_of(view.run.created_at) : std::string(),
                              .run = view.run.id,
                              .title = view.input.title,
                              .attempts = view.run.attempt,
                              .tokens = view.run.tokens,
                              .cost_micros = view.run.cost_micros});
    }
    if (!any || page.size() < kRunsPage) co_return Result<>();
    filter.before = page.back().run.number;
  }
}

}  // namespace stint::fleet
