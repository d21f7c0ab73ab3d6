#include "store/series.hpp"

#include <algorithm>

namespace stint::store {
namespace {

using domain::RunState;

/// By nearest rank. Reorders the values.
std::optional<Duration> percentile(std::vector<Duration>& values, std::size_t percent) {
  if (values.empty()) return std::nullopt;
  const std::size_t rank = (values.size() * percent + 99) / 100;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(rank, 1) - 1);
  std::ranges::nth_element(values, at);
  return *at;
}

}  // namespace

SeriesCounts operator+(const SeriesCounts& a, const SeriesCounts& b) {
  return {.started = a.started + b.started,
          .succeeded = a.succeeded + b.succeeded,
          .failed = a.failed + b.failed,
          .cancelled = a.cancelled + b.cancelled,
          .expired = a.expired + b.expired,
          .in_doubt = a.in_doubt + b.in_doubt,
          .tokens = a.tokens + b.tokens,
          .cost_micros = a.cost_micros + b.cost_micros};
}

void count_event(SeriesCounts& counts, std::string_view cause, std::optional<RunState> state) {
  if (cause == "claimed") ++counts.started;
  if (!state) return;
  if (*state == RunState::succeeded) ++counts.succeeded;
  if (*state == RunState::failed) ++counts.failed;
  if (*state == RunState::cancelled) ++counts.cancelled;
  if (*state == RunState::expired) ++counts.expired;
  if (*state == RunState::in_doubt) ++counts.in_doubt;
}

Sample with_pool(Sample sample, const Sample& pools) {
  sample.busy = pools.busy;
  sample.workers = pools.workers;
  return sample;
}

bool operator==(const Sample& a, const Sample& b) {
  return a.startable == b.startable && a.held == b.held && a.running == b.running && a.busy == b.busy &&
         a.workers == b.workers;
}

bool operator==(const SeriesPoint& a, const SeriesPoint& b) {
  return a.at == b.at && a.most == b.most && a.counts == b.counts && a.samples == b.samples;
}

SeriesPoint merged(const SeriesPoint& known, const SeriesPoint& fresh) {
  SeriesPoint out = known;
  out.most = {.startable = std::max(known.most.startable, fresh.most.startable),
              .held = std::max(known.most.held, fresh.most.held),
              .running = std::max(known.most.running, fresh.most.running),
              .busy = std::max(known.most.busy, fresh.most.busy),
              .workers = std::max(known.most.workers, fresh.most.workers)};
  if (fresh.counts) out.counts = out.counts.value_or(SeriesCounts()) + *fresh.counts;
  out.samples += fresh.samples;
  return out;
}

domain::Use advance_use(SeriesHead& head, const domain::Use& since, WallTime hour, const domain::Use& of_hour) {
  const domain::Use more{.tokens = std::max<std::int64_t>(0, since.tokens - head.counted.tokens),
                         .cost_micros = std::max<std::int64_t>(0, since.cost_micros - head.counted.cost_micros)};
  const domain::Use rest{.tokens = since.tokens - head.counted.tokens - more.tokens,
                         .cost_micros = since.cost_micros - head.counted.cost_micros - more.cost_micros};
  head.hour = hour;
  head.counted = of_hour - rest;
  return more;
}

EndedStats summarize(const std::vector<EndedRun>& runs) {
  EndedStats stats;
  std::vector<Duration> worked, waited;
  for (const EndedRun& run : runs) {
    if (run.state == RunState::succeeded) ++stats.succeeded;
    if (run.state == RunState::failed) ++stats.failed;
    if (run.state == RunState::cancelled) ++stats.cancelled;
    if (run.state == RunState::expired) ++stats.expired;
    if (!run.started_at) continue;
    worked.push_back(std::max<Duration>(run.finished_at - *run.started_at, Duration::zero()));
    if (run.attempt == 1) waited.push_back(std::max<Duration>(*run.started_at - run.created_at, Duration::zero()));
  }
  stats.worked_p50 = percentile(worked, 50);
  stats.worked_p90 = percentile(worked, 90);
  stats.waited_p50 = percentile(waited, 50);
  stats.waited_p90 = percentile(waited, 90);
  stats.complete = runs.size() < kEndedRunsMax;
  return stats;
}

}  // namespace stint::store
