// Members of MemoryRows: time series, and sums by hour.
#include "store/column_codec.hpp"
#include "store/memory_rows.hpp"

#include <algorithm>
#include <ranges>
#include <tuple>

namespace stint::store {

Result<std::optional<SeriesHead>> MemoryRows::series_head() { return series_head_; }

Result<> MemoryRows::put(const SeriesHead& head) {
  series_head_ = head;
  return {};
}

Result<std::optional<SeriesPoint>> MemoryRows::point(std::chrono::seconds step, WallTime at) {
  const auto found = points_.find({step, at});
  return found == points_.end() ? std::nullopt : std::optional(found->second);
}

Result<> MemoryRows::put(std::chrono::seconds step, const SeriesPoint& point) {
  points_[{step, point.at}] = point;
  return {};
}

Result<> MemoryRows::forget_points(std::chrono::seconds step, WallTime until) {
  points_.erase(points_.lower_bound({step, WallTime::min()}), points_.upper_bound({step, until}));
  return {};
}

Result<std::vector<SeriesPoint>> MemoryRows::points(std::chrono::seconds step, WallTime after) {
  std::vector<SeriesPoint> found;
  for (auto at = points_.upper_bound({step, after}); at != points_.end() && at->first.first == step; ++at) {
    found.push_back(at->second);
  }
  return found;
}

Result<> MemoryRows::put_pool(NodeNumber node, WallTime at, const Sample& sample) {
  pools_[node] = {at, sample};
  std::erase_if(pools_, [this](const auto& each) { return !nodes_.contains(each.first); });
  return {};
}

Result<Sample> MemoryRows::pools(WallTime from) {
  Sample sum;
  for (const auto& [node, pool] : pools_) {
    if (pool.first < from) continue;
    sum.busy += pool.second.busy;
    sum.workers += pool.second.workers;
  }
  return sum;
}

Result<SeriesCounts> MemoryRows::count_events(std::int64_t& after, WallTime from) {
  SeriesCounts counts;
  for (auto at = events_.upper_bound(after); at != events_.end(); ++at) {
    const EventRow& event = at->second;
    if (event.run.value != 0 && event.at >= from) count_event(counts, event.cause, event.state);
  }
  after = last_event_;
  return counts;
}

Result<Use> MemoryRows::used_since(WallTime hour) {
  Use sum;
  for (auto at = spent_.lower_bound({hour, AgentNumber{}}); at != spent_.end(); ++at) {
    sum += {.tokens = at->second.tokens, .cost_micros = at->second.cost_micros};
  }
  return sum;
}

Result<std::vector<Event>> MemoryRows::fleet_events(WallTime from, std::size_t most) {
  std::vector<Event> found;
  for (const auto& [number, event] : std::views::reverse(events_)) {
    if (found.size() >= most) break;
    if (event.run.value == 0 && event.at >= from) found.push_back(event_of(event));
  }
  std::ranges::reverse(found);
  return found;
}

Result<std::vector<EndedRun>> MemoryRows::ended(AgentNumber agent, WallTime from, std::size_t most) {
  std::vector<EndedRun> found;
  for (const auto& [time, number] : std::views::reverse(finished_)) {
    if (found.size() >= most || time < from) break;
    const RunRow& row = runs_.at(number).row;
    if (row.agent != agent) continue;
    found.push_back({.state = row.run.state,
                     .attempt = row.run.attempt,
                     .created_at = row.run.created_at,
                     .finished_at = time,
                     .started_at = row.run.started_at});
  }
  return found;
}

Result<> MemoryRows::merge_hours(WallTime before) {
  const WallTime end = std::chrono::floor<std::chrono::days>(before);
  std::map<std::pair<WallTime, AgentNumber>, Spent> days;
  std::erase_if(spent_, [&](const auto& each) {
    const auto& [hour, agent] = each.first;
    if (hour >= end) return false;
    Spent& day = days[{std::chrono::floor<std::chrono::days>(hour), agent}];
    day.runs += each.second.runs;
    day.tokens += each.second.tokens;
    day.cost_micros += each.second.cost_micros;
    return true;
  });
  spent_.merge(days);
  return {};
}

std::vector<Spent> MemoryRows::spent(WallTime since, SpentBy by) const {
  const auto begin = [by](WallTime time) -> WallTime {
    if (by == SpentBy::hour) return std::chrono::floor<std::chrono::hours>(time);
    return std::chrono::floor<std::chrono::days>(time);
  };
  std::map<std::pair<WallTime, std::string>, Spent> sums;
  for (auto at = spent_.lower_bound({begin(since), AgentNumber{}}); at != spent_.end(); ++at) {
    const auto& [hour, number] = at->first;
    const std::string& agent = agents_.at(number).entry.name;
    Spent& sum = sums[{begin(hour), agent}];
    sum.day = day_of(hour);
    if (by == SpentBy::hour) sum.hour = static_cast<std::uint32_t>(hour_of(hour) % 24);
    sum.agent = agent;
    sum.runs += at->second.runs;
    sum.tokens += at->second.tokens;
    sum.cost_micros += at->second.cost_micros;
  }
  std::vector<Spent> found;
  for (Spent& sum : sums | std::views::values) found.push_back(std::move(sum));
  return found;
}

}  // namespace stint::store
