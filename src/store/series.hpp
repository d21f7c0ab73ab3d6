/// Time series of the whole fleet, kept in the store through restarts (docs/decisions/0032). Every daemon calls
/// Store::sample() once per step; the first call of a step makes its point, and the others only add their pools. Points
/// lie on the store's own clock. A step without a sample has no point: readers show a gap, never a zero.
///
/// The shortest step is kept for hours. Longer ones are made from it while it is written, and kept for days and weeks.
#pragma once

#include "domain/budget_core.hpp"
#include "domain/numbers.hpp"
#include "domain/run_state.hpp"
#include "domain/system.hpp"
#include "stint/error.hpp"
#include "stint/time.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stint::store {

struct Event;

struct SeriesStep {
  std::chrono::seconds length{}, kept{};
};
// 2160 + 4320 + 840 points, of about 100 bytes each.
inline constexpr std::array kSeriesSteps = {SeriesStep{std::chrono::seconds(10), std::chrono::hours(6)},
                                            SeriesStep{std::chrono::minutes(1), std::chrono::hours(72)},
                                            SeriesStep{std::chrono::hours(1), std::chrono::hours(24 * 35)}};
inline constexpr std::uint32_t kMarksMax = 500;         ///< of one answer; the newest
inline constexpr std::uint32_t kEndedRunsMax = 10'000;  ///< of which statistics are computed; the newest
/// Sums by hour are kept so long, and then merged into those of their days.
inline constexpr std::chrono::hours kHoursKept{24 * 8};

/// What a daemon observes: the queue and the runs of the whole fleet, and its own pool.
struct Sample {
  std::int64_t startable = 0, held = 0, running = 0;
  std::int64_t busy = 0, workers = 0;
};

/// The observation with the pools of all nodes in place of its own.
[[nodiscard]] Sample with_pool(Sample sample, const Sample& pools);

/// What happened during a step. Attempts started; runs ended, by outcome; use that was reported or settled. Use counts
/// when the sum of all runs grows: a settlement below what was reported makes the next steps smaller, never negative.
struct SeriesCounts {
  std::int64_t started = 0, succeeded = 0, failed = 0, cancelled = 0, expired = 0, in_doubt = 0;
  std::int64_t tokens = 0, cost_micros = 0;

  friend bool operator==(const SeriesCounts&, const SeriesCounts&) = default;
};
[[nodiscard]] SeriesCounts operator+(const SeriesCounts& a, const SeriesCounts& b);
/// Counts an event of the feed.
void count_event(SeriesCounts& counts, std::string_view cause, std::optional<domain::RunState> state);

struct SeriesPoint {
  WallTime at{};  ///< the end of its step
  Sample most;    ///< the largest values of the step
  /// None: no sample was taken at the beginning of the step, so that it is not known what belongs to it.
  std::optional<SeriesCounts> counts{};
  std::int64_t samples = 0;  ///< of the shortest step, from which it is made

  friend bool operator==(const SeriesPoint&, const SeriesPoint&);
};
[[nodiscard]] bool operator==(const Sample& a, const Sample& b);
/// A point of a longer step with one more sample, or with the pool of one more daemon.
[[nodiscard]] SeriesPoint merged(const SeriesPoint& known, const SeriesPoint& fresh);

struct SeriesQuery {
  Duration step = kSeriesSteps[0].length;  ///< one of kSeriesSteps
  Duration span = std::chrono::hours(1);   ///< back from now
};
struct Series {
  WallTime as_of{};
  Duration step{};
  std::vector<SeriesPoint> points;  ///< by time; steps without one are gaps
  std::vector<Event> marks;         ///< events of the fleet in that time, by time
};

/// How to divide what was spent.
enum class SpentBy : std::uint8_t { day, hour };

/// A finished run, for statistics.
struct EndedRun {
  domain::RunState state = domain::RunState::succeeded;
  std::uint32_t attempt = 0;
  WallTime created_at{}, finished_at{};
  std::optional<WallTime> started_at;  ///< of its last attempt
};
/// Of the runs of an agent that finished within a time. None: no run tells.
struct EndedStats {
  std::uint64_t succeeded = 0, failed = 0, cancelled = 0, expired = 0;
  std::optional<Duration> worked_p50, worked_p90;  ///< of last attempts, from start to end
  std::optional<Duration> waited_p50, waited_p90;  ///< from submission to the start, of runs with one attempt
  bool complete = true;  ///< false: there were more than kEndedRunsMax, the oldest are left out
};
[[nodiscard]] EndedStats summarize(const std::vector<EndedRun>& runs);

/// Where the last point ended: what came later belongs to the next.
struct SeriesHead {
  WallTime at{};
  std::int64_t event = 0;  ///< the last one that was counted
  WallTime hour{};         ///< a full hour of the wall clock …
  domain::Use counted;     ///< … and what was counted of the use since then
};
/// Moves the head on, and returns how much use the step between has. `since`: the use since head.hour; `hour`: the
/// present one; `of_hour`: the use since then.
[[nodiscard]] domain::Use advance_use(SeriesHead& head, const domain::Use& since, WallTime hour,
                                      const domain::Use& of_hour);

/// The rows of the series, of a store on one machine: a part of rows.hpp. Times are the store's, unless said otherwise.
class SeriesRows {
 public:
  SeriesRows() = default;
  virtual ~SeriesRows() = default;
  SeriesRows(const SeriesRows&) = delete;
  SeriesRows& operator=(const SeriesRows&) = delete;

  virtual Result<std::optional<SeriesHead>> series_head() = 0;
  virtual Result<> put(const SeriesHead& head) = 0;
  virtual Result<std::optional<SeriesPoint>> point(std::chrono::seconds step, WallTime at) = 0;
  virtual Result<> put(std::chrono::seconds step, const SeriesPoint& point) = 0;
  virtual Result<> forget_points(std::chrono::seconds step, WallTime until) = 0;
  virtual Result<std::vector<SeriesPoint>> points(std::chrono::seconds step, WallTime after) = 0;
  virtual Result<> put_pool(domain::NodeNumber node, WallTime at, const Sample& sample) = 0;
  /// The sum of busy and workers over the pools of living nodes that were put at that time or later.
  virtual Result<Sample> pools(WallTime from) = 0;
  /// Of the events after that number, which are not older than `from`. Sets `after` to the last event there is.
  virtual Result<SeriesCounts> count_events(std::int64_t& after, WallTime from) = 0;
  virtual Result<domain::Use> used_since(WallTime hour) = 0;  ///< by the wall clock
  virtual Result<std::vector<Event>> fleet_events(WallTime from, std::size_t most) = 0;
  virtual Result<std::vector<EndedRun>> ended(domain::AgentNumber agent, WallTime from, std::size_t most) = 0;
  virtual Result<> merge_hours(WallTime before) = 0;  ///< by the wall clock
};

}  // namespace stint::store
