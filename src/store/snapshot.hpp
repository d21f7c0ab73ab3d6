/// One consistent look at the whole fleet: Store::snapshot() reads all of it in one transaction, with the cursor of the
/// feed at that moment. The events after the cursor are exactly the changes since. Docs: docs/decisions/0029.
#pragma once

#include "store/store.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stint::store {

// How much of each list a snapshot may contain; totals are beside the lists.
inline constexpr std::uint32_t kRunningListMax = 200;
inline constexpr std::uint32_t kNeedsListMax = 50;
inline constexpr std::uint32_t kFailuresListMax = 10;
// The rate at which runs end is taken from the last ones.
inline constexpr std::uint32_t kRateRunsMax = 500;
inline constexpr Duration kRateWindow = std::chrono::minutes(10);

/// Runs that wait for the same reason.
struct WaitGroup {
  domain::WaitCause cause = domain::WaitCause::place;
  std::string limit{};  ///< of a cause that names one
  std::uint64_t runs = 0;
  /// Since when the first of them waits: its submission, or the end of its last attempt. None: not known for this part
  /// of an agent's queue.
  std::optional<WallTime> oldest{};
  /// When the first of them goes on by itself: the end of a delay, a back-off or a park. None: not at a known moment.
  std::optional<WallTime> until{};

  friend bool operator==(const WaitGroup&, const WaitGroup&) = default;
};

/// The ready runs of an agent, and the limits that each of them needs.
struct AgentLine {
  std::string agent;
  std::int64_t rank_ms = 0;  ///< of the first one: the smaller rank goes first
  std::uint64_t runs = 0;
  std::uint64_t kept = 0;  ///< of those, by a living node that has submitted them itself
  std::optional<WallTime> oldest{};
  std::vector<LimitUse> limits{};  ///< by name
};

/// The queued runs by what keeps each from starting. startable + all groups = queued runs.
struct QueueSplit {
  std::uint64_t startable = 0;                 ///< could begin now, if there were workers enough
  std::optional<WallTime> startable_oldest{};  ///< as WaitGroup::oldest
  std::optional<WallTime> oldest{};            ///< of all queued runs, without those whose start time is to come
  std::vector<WaitGroup> held{};               ///< by cause, then by limit
};

/// How fast runs end: those that succeeded or failed among the last ones.
struct EndRate {
  std::uint64_t runs = 0;
  Duration over{};  ///< since the first of them ended
};

struct Snapshot {
  WallTime as_of{};                                  ///< by the store's clock, as wall time
  std::string cursor;                                ///< of the feed
  std::map<domain::RunState, std::uint64_t> counts;  ///< all states
  std::vector<WaitGroup> waiting;                    ///< queued runs that are not ready, by their hold
  std::vector<WaitGroup> parked;                     ///< by hold and limit
  std::vector<AgentLine> lines;                      ///< ready runs, by rank and name
  std::vector<QueueState> queues;
  std::vector<Run> running;   ///< the earliest claim first, with texts
  std::vector<Run> needs;     ///< in doubt, or parked until a person answers: the oldest first
  std::vector<Run> failures;  ///< failed or expired, the last first
  std::vector<LimitState> limits;
  std::vector<NodeState> nodes;
  Use today;
  EndRate ended;
  std::uint64_t bytes = 0;  ///< of the store, on disk

  [[nodiscard]] std::uint64_t count(domain::RunState state) const {
    const auto found = counts.find(state);
    return found == counts.end() ? 0 : found->second;
  }
  /// Queued runs that any node could claim, whatever limits say.
  [[nodiscard]] std::uint64_t claimable() const;
  [[nodiscard]] std::uint64_t needs_total() const;
};

/// Divides the queue under these limits, which a caller may have completed by what it knows beyond the store. Agents
/// are served in the order of their first runs, each as far as the rest of every limit allows. Pure.
[[nodiscard]] QueueSplit split_queue(const Snapshot& snapshot, const std::vector<LimitState>& limits);

/// How long the queue takes at the rate at which runs ended lately. None: too few have ended, or none can start.
[[nodiscard]] std::optional<Duration> estimate_drain(const Snapshot& snapshot, const QueueSplit& split);

}  // namespace stint::store
