/// The timeline of a run: where its time went, computed from its events. Pure.
///
/// The segments of a run follow each other without gap or overlap from its first event to its end (or to now), so that
/// their lengths add up to its wall time. A segment is a wait or a part of an attempt. Within an attempt, the span that
/// began last decides; what no span covers is `working`. Where the cause of a wait is not known it is `queue`.
#pragma once

#include "domain/agent.hpp"
#include "domain/budget_core.hpp"
#include "domain/numbers.hpp"
#include "domain/run_state.hpp"
#include "domain/span.hpp"
#include "domain/verdict.hpp"
#include "stint/retry_after.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::engine {

/// An event of a run, as far as its timeline needs it.
struct TimelineFact {
  WallTime at{};
  std::string cause;
  std::optional<domain::RunState> state;
  domain::Hold hold = domain::Hold::none;
  domain::Fence fence{};
  std::optional<domain::NodeNumber> node{};
  std::string error{};
  std::optional<domain::Span> span{};              ///< of a span: it ended at `at`
  std::vector<domain::LimitWait> waits{};          ///< of a claim
  std::optional<domain::VerdictRecord> verdict{};  ///< of the end of an attempt
};

struct Segment {
  domain::SpanKind kind = domain::SpanKind::queue;
  std::string name{};  ///< of the limit, model or tool
  WallTime at{};
  std::chrono::milliseconds length{};
  std::uint32_t attempt = 0;  ///< 0: between attempts

  friend bool operator==(const Segment&, const Segment&) = default;
};

/// One claim of the run. An attempt that was handed back, parked or lost does not count: the next one has its number.
struct AttemptLane {
  struct Part {
    domain::SpanKind kind = domain::SpanKind::tool;
    std::string name;
    WallTime at{}, until{};
    Usage usage{};
  };
  std::uint32_t attempt = 1;
  domain::Fence fence{};
  std::optional<domain::NodeNumber> node;
  WallTime begun{};
  std::optional<WallTime> ended;            ///< none: it runs
  std::string cause{};                      ///< of the event that ended it: succeeded, failed, retry, park, …
  std::optional<domain::RunState> state{};  ///< of the run after it, with its hold
  domain::Hold hold = domain::Hold::none;
  std::string error{};
  std::optional<domain::VerdictRecord> verdict{};
  std::vector<Part> spans{};  ///< by their end; may overlap
};

struct Timeline {
  std::string run;
  domain::RunState state = domain::RunState::queued;
  WallTime begun{}, until{};  ///< its first event; its end, or now
  std::chrono::milliseconds waiting{}, working{};
  std::vector<Segment> segments;
  std::vector<AttemptLane> attempts;
  /// The time of each kind, from all spans: exact, whatever was left out. Kinds without time and spans are missing.
  struct Sum {
    domain::SpanKind kind = domain::SpanKind::queue;
    std::chrono::milliseconds length{};
    std::uint64_t spans = 0;  ///< of attempts

    friend bool operator==(const Sum&, const Sum&) = default;
  };
  std::vector<Sum> sums{};
  /// Since its first start, without the time in which it was parked: what its time budget is charged with, unless a
  /// limit of its agent was paused.
  std::chrono::milliseconds charged{};
  domain::BudgetSpec budget{};        ///< its own, else its agent's
  domain::Use used{};                 ///< of the run and of all that draw on its budget
  std::uint64_t spans_left_out = 0;   ///< shorter ones beyond kSpansMax: segments show their time as `working`
  std::uint64_t events_left_out = 0;  ///< not read: a part of the history is drawn as one stretch

  static constexpr std::size_t kSpansMax = 500;
};

[[nodiscard]] bool is_wait(domain::SpanKind kind) noexcept;

/// `facts`: in the order of the events. `now`: for a run that has not ended. `waits`: of a ready run, until now.
[[nodiscard]] Timeline make_timeline(std::vector<TimelineFact> facts, WallTime now,
                                     std::vector<domain::LimitWait> waits);

}  // namespace stint::engine
