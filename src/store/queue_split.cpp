#include "store/snapshot.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace stint::store {
namespace {

using domain::RunState;
using domain::WaitCause;

constexpr std::uint64_t kRateLeast = 5;  // fewer ends say nothing about the next ones

/// What is left of a limit while agents are served one after the other.
struct Rest {
  const LimitState* limit = nullptr;
  std::int64_t units = 0, runs = 0;
};
using Rests = std::map<std::string, Rest, std::less<>>;

/// How many runs one limit admits, and which cause it is if that is too few. A smaller cause goes first.
struct Room {
  std::int64_t runs = std::numeric_limits<std::int64_t>::max();
  WaitCause cause = WaitCause::limit;
  std::string limit;
};

Room room_of(const Rest& rest, const AgentLine& line, std::uint32_t weight) {
  const LimitState& limit = *rest.limit;
  Room room;
  room.limit = limit.name;
  if (limit.paused) {
    room.runs = 0;
    room.cause = WaitCause::paused;
  } else if (!limit.turn_of.empty() && limit.turn_of != line.agent) {
    room.runs = 0;
    room.cause = WaitCause::turn;
  } else {
    if (limit.capacity) room.runs = (std::int64_t{*limit.capacity} - rest.units) / std::int64_t{weight};
    const std::int64_t probed =
        limit.ramp ? std::int64_t{*limit.ramp} - rest.runs : std::numeric_limits<std::int64_t>::max();
    if (probed < room.runs) {
      room.runs = probed;
      room.cause = WaitCause::probe;
    }
  }
  room.runs = std::max<std::int64_t>(room.runs, 0);
  return room;
}

/// The limit that leaves the least room; the first cause, then the first name, if several leave the same.
Room least_room(const Rests& rests, const AgentLine& line) {
  Room least;
  for (const LimitUse& use : line.limits) {
    const auto found = rests.find(use.limit);
    if (found == rests.end()) continue;
    const Room room = room_of(found->second, line, use.weight);
    if (std::tie(room.runs, room.cause, room.limit) < std::tie(least.runs, least.cause, least.limit)) least = room;
  }
  return least;
}

std::optional<WallTime> earlier(std::optional<WallTime> a, std::optional<WallTime> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

/// A group while it is being added up. Of an agent whose runs fall into two groups, the oldest may be in either.
struct Sum {
  std::uint64_t runs = 0;
  std::optional<WallTime> known, unknown;  // the second: no run of an unknown part is older

  void add(const AgentLine& line, std::uint64_t held) {
    runs += held;
    std::optional<WallTime>& into = held == line.runs ? known : unknown;
    into = earlier(into, line.oldest);
  }
  [[nodiscard]] std::optional<WallTime> oldest() const {
    return known && (!unknown || *known <= *unknown) ? known : std::nullopt;
  }
};

}  // namespace

std::uint64_t Snapshot::claimable() const {
  std::uint64_t sum = 0;
  for (const AgentLine& line : lines) sum += line.runs - line.kept;
  return sum;
}

std::uint64_t Snapshot::needs_total() const {
  std::uint64_t sum = count(RunState::in_doubt);
  for (const WaitGroup& group : parked) sum += group.cause == WaitCause::person ? group.runs : 0;
  return sum;
}

QueueSplit split_queue(const Snapshot& snapshot, const std::vector<LimitState>& limits) {
  Rests rests;
  for (const LimitState& limit : limits) rests[limit.name] = {&limit, limit.units, limit.runs};
  QueueSplit split;
  Sum startable;
  std::map<std::pair<WaitCause, std::string>, Sum> sums;
  for (const AgentLine& line : snapshot.lines) {
    const Room room = least_room(rests, line);
    const auto started = std::min(line.runs, static_cast<std::uint64_t>(room.runs));
    if (started > 0) startable.add(line, started);
    if (started < line.runs) sums[{room.cause, room.limit}].add(line, line.runs - started);
    for (const LimitUse& use : line.limits) {
      const auto rest = rests.find(use.limit);
      if (rest == rests.end()) continue;
      rest->second.units += static_cast<std::int64_t>(started * use.weight);
      rest->second.runs += static_cast<std::int64_t>(started);
    }
  }
  split.startable = startable.runs;
  split.startable_oldest = startable.oldest();
  split.held = snapshot.waiting;
  for (const WaitGroup& group : snapshot.waiting) {
    if (group.cause != WaitCause::delay) split.oldest = earlier(split.oldest, group.oldest);
  }
  for (const AgentLine& line : snapshot.lines) split.oldest = earlier(split.oldest, line.oldest);
  for (const auto& [key, sum] : sums) {
    split.held.push_back({.cause = key.first, .limit = key.second, .runs = sum.runs, .oldest = sum.oldest()});
  }
  std::ranges::sort(split.held, {}, [](const WaitGroup& group) { return std::tie(group.cause, group.limit); });
  return split;
}

std::optional<Duration> estimate_drain(const Snapshot& snapshot, const QueueSplit& split) {
  const std::uint64_t queued = snapshot.count(RunState::queued);
  if (queued == 0) return Duration::zero();
  const bool moves = split.startable > 0 || snapshot.count(RunState::running) > 0;
  if (!moves || snapshot.ended.runs < kRateLeast || snapshot.ended.over <= Duration::zero()) return std::nullopt;
  const double each =
      std::chrono::duration<double>(snapshot.ended.over).count() / static_cast<double>(snapshot.ended.runs);
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(each * static_cast<double>(queued)));
}

}  // namespace stint::store
