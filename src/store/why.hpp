/// Why a run waits, as fields: which limit, how much of it is held and by which runs, the place in line, until when.
/// Text for people is made from these at the edge (command line, dashboard) and is never parsed back.
#pragma once

#include "domain/run_state.hpp"
#include "domain/system.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::store {

/// The first five are the run's hold (domain::Hold); the others concern a run that is ready.
enum class WaitReason : std::uint8_t {
  session,  ///< an earlier run of its session is unfinished: `behind`
  delay,    ///< its start time is in the future: `until`
  backoff,  ///< it waits between two attempts: `until`
  quota,    ///< parked until its account may be used again: `until`, `limit` if it is parked on one
  person,   ///< parked until a person answers: `limit` if it is parked on one
  paused,   ///< a limit is paused: `limit`, `until` unless it is paused until a resume
  probe,    ///< after a pause a limit admits few runs at first: `limit`, `ramp`, `holders`
  limit,    ///< too few units are free: `limit`, `capacity`, `held`, `weight`, `holders`
  turn,     ///< a heavier request of another agent is served first: the same, `turn_of`, `until`
  place,    ///< its place in the queue of its agent: `place`
};
inline constexpr std::array kWaitReasons = {
    WaitReason::session, WaitReason::delay, WaitReason::backoff, WaitReason::quota, WaitReason::person,
    WaitReason::paused,  WaitReason::probe, WaitReason::limit,   WaitReason::turn,  WaitReason::place};
[[nodiscard]] std::string_view to_string(WaitReason reason) noexcept;
[[nodiscard]] std::optional<WaitReason> parse_wait_reason(std::string_view name) noexcept;

inline constexpr std::uint32_t kLimitListMax = 100;  // holders or waiters listed of one limit
inline constexpr std::int64_t kPlaceMax = 1000;      // a place further back is reported as this one

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

  friend bool operator==(const LimitWaiter&, const LimitWaiter&) = default;
};

/// One reason why a run waits. Fields that the reason does not name are empty.
struct Why {
  WaitReason reason = WaitReason::place;
  std::string limit;
  std::optional<std::uint32_t> capacity;  ///< of the limit; none: it has no size
  std::int64_t held = 0;                  ///< units
  std::uint32_t weight = 1;               ///< units that the run asks for
  std::vector<LimitHolder> holders;       ///< the earliest claim first; at most kLimitListMax
  std::optional<std::uint32_t> ramp;      ///< runs that the limit admits at once
  std::string turn_of;                    ///< agent
  std::string behind;                     ///< id of the head of its session …
  std::optional<domain::RunState> behind_state;
  std::optional<std::int64_t> place;  ///< from 1; kPlaceMax: that one or a later one
  std::optional<WallTime> until;
};

}  // namespace stint::store
