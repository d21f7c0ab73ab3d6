#include "cli/status_text.hpp"

#include "agent/quantity.hpp"
#include "cli/fleet_text.hpp"
#include "cli/printable.hpp"
#include "cli/reason_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stint::cli {
namespace {

using domain::RunState;

constexpr double kBusy = 0.8, kIdle = 0.3;  // the autoscaler's defaults
constexpr std::size_t kNamesShown = 3;      // of holders
constexpr int kBar = 20;

std::uint64_t count(const engine::FleetStatus& status, RunState state) {
  const auto found = status.stats.runs.find(state);
  return found == status.stats.runs.end() ? 0 : found->second;
}

Line field(std::string_view name) { return Line(fmt::format("  {:<8} ", name), Style::dim); }

Line head_line(const engine::FleetStatus& status, const std::string& where, bool daemon) {
  Line line;
  if (!daemon) {
    line.add("no daemon", Style::yellow).add(" runs here: `stint serve` starts one");
    return line;
  }
  const bool serving = status.phase == engine::Phase::serving;
  line.add(std::string(to_string(status.phase)), serving ? Style::green : Style::yellow);
  line.add("  " + printable(where));
  if (!status.version.empty()) line.add("  stint " + printable(status.version), Style::dim);
  return line;
}

Line pool_line(const PoolHealth& pool) {
  const auto busy = std::ranges::count_if(pool.workers, [](const WorkerHealth& each) { return each.job.has_value(); });
  Line line = field("pool");
  line.add(fmt::format("{} {} of {} busy, {:.0f} %", bar_text(pool.utilization, kBar), busy,
                       some(pool.pool_size, "worker"), pool.utilization * 100));
  if (pool.target_size != pool.pool_size) line.add(fmt::format(", changing to {}", pool.target_size));
  if (pool.bounds) line.add(fmt::format("  (from {} to {})", pool.bounds->first, pool.bounds->second), Style::dim);
  if (pool.draining) line.add("  draining", Style::yellow);
  if (pool.stale_workers > 0) line.add(fmt::format("  {} stale", pool.stale_workers), Style::red);
  return line;
}

Line queue_line(const engine::FleetStatus& status) {
  const std::uint64_t queued = count(status, RunState::queued);
  Line line = field("queue");
  line.add(fmt::format("{} queued, {} ready", queued, status.stats.ready));
  if (status.queue_capacity > 0) line.add(fmt::format("  (room for {})", status.queue_capacity), Style::dim);
  if (status.pool) {
    for (const store::QueueState& each : status.pool->queues) {
      if (each.queued > 0 && each.queued >= each.queued_max) {
        line.add(fmt::format("  the queue of {} is full", each.agent), Style::red);
      }
    }
  }
  return line;
}

Line runs_line(const engine::FleetStatus& status) {
  Line line = field("runs");
  line.add(fmt::format("{} running", count(status, RunState::running)), Style::cyan);
  for (const RunState state : {RunState::parked, RunState::succeeded, RunState::failed, RunState::cancelled,
                               RunState::expired, RunState::in_doubt}) {
    if (const std::uint64_t number = count(status, state); number > 0) {
      line.add(", ").add(fmt::format("{} {}", number, to_string(state)), state_style(state));
    }
  }
  return line;
}

Line cost_line(const engine::FleetStatus& status) {
  Line line = field("today");
  line.add("$" + agent::format_cost(status.cost_micros_today));
  if (status.cost_micros_per_day) line.add(" of $" + agent::format_cost(*status.cost_micros_per_day));
  line.add(", " + count_text(status.tokens_today) + " tokens");
  return line;
}

std::string names(const std::vector<domain::LimitEntry>& all, WallTime now) {
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), kNamesShown); ++i) {
    text += (i > 0 ? ", " : "") + holder_text(all[i], now);
  }
  if (all.size() > kNamesShown) text += fmt::format(" and {} more", all.size() - kNamesShown);
  return text;
}

}  // namespace

std::string bar_text(double share, int columns) {
  const int full = std::clamp(static_cast<int>(std::lround(share * columns)), 0, columns);
  return "[" + std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(columns - full), '.') + "]";
}

std::vector<Line> summary_lines(const engine::FleetStatus& status, const std::string& where, bool daemon) {
  std::vector<Line> lines = {head_line(status, where, daemon)};
  Line store = field("store");
  lines.push_back(store.add(printable(status.store)));
  if (status.pool) lines.push_back(pool_line(*status.pool));
  lines.push_back(queue_line(status));
  lines.push_back(runs_line(status));
  lines.push_back(cost_line(status));
  if (status.shortage) lines.push_back(field("held up").add(shortage_text(*status.shortage), Style::yellow));
  return lines;
}

std::vector<Line> limit_lines(const std::vector<engine::LimitView>& limits, WallTime now, std::size_t most) {
  std::vector<Line> lines;
  std::size_t left = 0;
  for (const engine::LimitView& limit : limits) {
    if (limit.held == 0 && limit.waiting == 0 && !limit.paused) continue;
    if (lines.size() == most) {
      ++left;
      continue;
    }
    Line line = field("limit");
    line.add(printable(limit.name), Style::bold);
    line.add(limit.capacity ? fmt::format("  {} of {} held", limit.held, *limit.capacity)
                            : fmt::format("  {} held", limit.held));
    if (limit.waiting > 0) line.add(fmt::format(", {} waiting", limit.waiting), Style::yellow);
    if (!limit.holders.empty()) line.add(": " + names(limit.holders, now), Style::dim);
    if (limit.paused) {
      const std::string until = limit.paused_until ? " for " + length_text(*limit.paused_until - now) + " more" : "";
      line.add("  paused" + until, Style::yellow);
    }
    lines.push_back(std::move(line));
  }
  if (left > 0) lines.push_back(field("").add(fmt::format("and {} more: stint status", left), Style::dim));
  return lines;
}

std::string advice(const engine::FleetStatus& status) {
  if (!status.pool || status.pool->draining || status.pool->pool_size == 0) return {};
  const PoolHealth& pool = *status.pool;
  const bool at_most = !pool.bounds || pool.pool_size >= pool.bounds->second;
  const bool at_least = !pool.bounds || pool.pool_size <= pool.bounds->first;
  if (pool.utilization > kBusy && status.stats.ready > 0 && at_most) {
    return fmt::format("{:.0f} % of the workers are busy and {} could start: `stint scale {}` adds workers",
                       pool.utilization * 100, some(status.stats.ready, "run"),
                       pool.pool_size + std::max<std::size_t>(1, pool.pool_size / 4));
  }
  if (pool.utilization > kBusy) {
    return fmt::format("{:.0f} % of the workers are busy{}", pool.utilization * 100,
                       at_most ? "; `stint scale` adds workers" : "; the pool grows by itself");
  }
  if (pool.utilization < kIdle && pool.pool_size > 1) {
    return fmt::format(
        "{:.0f} % of the workers are busy{}", pool.utilization * 100,
        at_least && !pool.bounds ? "; `stint scale` makes the pool smaller" : "; the pool shrinks by itself");
  }
  return {};
}

}  // namespace stint::cli
