/// Reports about the past: an agent with its statistics, and what was spent. The API, the commands and the JSON shapes
/// use them.
#pragma once

#include "agent/problem.hpp"
#include "engine/views.hpp"
#include "store/series.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stint::engine {

/// Statistics of an agent over the last day.
struct AgentDay {
  store::EndedStats ended;
  store::Use used;                  ///< of attempts, as `hours` adds it up
  std::vector<store::Spent> hours;  ///< by hour; hours without use are left out
  std::vector<RunView> failures;    ///< the last runs that failed or expired, newest first; of any time
};
inline constexpr Duration kStatisticsSpan = std::chrono::hours(24);
inline constexpr std::uint32_t kAgentFailuresMax = 5;

/// An agent with all that is known about it.
struct AgentDetail {
  std::string name;
  /// With the defaults of the settings. None: its file has errors, or the answer comes from a daemon, whose checkout
  /// may be another one.
  std::optional<domain::Agent> definition;
  std::string refused;                   ///< why it can't run; empty: it can
  std::vector<agent::Problem> problems;  ///< of its file
  WallTime as_of{};
  AgentDay day;
};

/// How to divide a cost: by at least one of them.
struct CostQuery {
  bool agent = false, day = false, run = false;
  WallTime since{};
};
struct CostLine {
  std::string agent, day, run, title;  ///< empty: not divided by it
  std::int64_t attempts = 0;           ///< that were settled; of a run, that were begun
  std::int64_t tokens = 0, cost_micros = 0;
};
/// By day and agent, the sums of attempts since the day of `since`, which outlive deleted runs. By run, the runs that
/// were submitted since then, with all that each has used, newest first.
struct CostReport {
  WallTime since{}, as_of{};
  std::vector<CostLine> lines;
  store::Use total;      ///< of all lines
  bool complete = true;  ///< false: there are more than kCostRunsMax runs, the oldest are left out
};
inline constexpr std::uint32_t kCostRunsMax = 10'000;

}  // namespace stint::engine
