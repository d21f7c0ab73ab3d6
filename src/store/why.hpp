/// Why a run waits, as fields: which limit, how much of it is held and by which runs, the place in line, until when.
/// Text for people is made from these at the edge (command line, dashboard) and is never parsed back.
#pragma once

#include "domain/run_state.hpp"
#include "domain/system.hpp"
#include "domain/wait_reason.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stint::store {

inline constexpr std::uint32_t kLimitListMax = 100;  // holders or waiters listed of one limit
inline constexpr std::int64_t kPlaceMax =
    1000;  // a place further back is reported as this one; so is a number of runs ahead

/// A running run that holds units of a limit, with the weight it was claimed with.
struct LimitHolder {
  std::string run;    ///< id
  std::string agent;  ///< as the store names it
  std::uint32_t weight = 1;
  WallTime since{};  ///< when it was claimed

  friend bool operator==(const LimitHolder&, const LimitHolder&) = default;
};

/// A ready run whose agent uses the limit.
struct LimitWaiter {
  std::string run;    ///< id
  std::string agent;  ///< as the store names it
  std::uint32_t weight = 1;
  WallTime since{};  ///< its submission, or the end of its last attempt

  friend bool operator==(const LimitWaiter&, const LimitWaiter&) = default;
};

/// One reason why a run waits. Fields that the cause does not name are empty.
struct Why {
  /// One of `session` to `place`. A hold of the run (domain::Hold) is the cause of the same name; the others apply to a
  /// ready run. A store never returns the other causes.
  domain::WaitCause cause = domain::WaitCause::place;
  std::string limit;
  std::optional<std::uint32_t> capacity;  ///< of the limit; none: it has no size
  std::int64_t held = 0;                  ///< units
  std::uint32_t weight = 1;               ///< units that the run asks for
  std::vector<LimitHolder> holders;       ///< the earliest claim first; at most kLimitListMax
  /// Of the causes `limit` and `turn`: runs before it in the line of the limit (LimitState::line). kPlaceMax: so many,
  /// or more.
  std::optional<std::uint32_t> ahead;
  std::optional<std::uint32_t> ramp;  ///< runs that the limit admits at once
  std::string turn_of;                ///< agent
  std::string behind;                 ///< id of the head of its session …
  std::optional<domain::RunState> behind_state;
  std::optional<std::int64_t> place;  ///< from 1; kPlaceMax: that one or a later one
  std::optional<WallTime> until;
};

}  // namespace stint::store
