/// Why a run waits, as fields: which limit, how much of it is held and by what, the place in line, until when. The
/// store, the permits of the host and the engine fill them in, and the API sends them. The command line, the dashboard
/// and the log make text for people from them; nothing parses that text.
#pragma once

#include "domain/limit_entry.hpp"
#include "domain/run_state.hpp"
#include "stint/retry_after.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::domain {

/// Each names the fields of WaitReason that go with it.
enum class WaitCause : std::uint8_t {
  session,    ///< an earlier run of its session is unfinished: `behind`, `behind_state`
  delay,      ///< its start time is in the future: `until`
  backoff,    ///< it waits between two attempts: `until`
  quota,      ///< parked until its account may be used again: `until`; `limit` if it is parked on one
  person,     ///< parked until a person answers: `limit` if it is parked on one
  paused,     ///< a limit is paused: `limit`; `until`, unless until a resume; `behind`, `detail`: the run whose failure
              ///< paused it, and its error
  probe,      ///< after a pause a limit admits few runs at first: `limit`, `ramp`, `holders`
  limit,      ///< too few units are free: `limit`, `capacity`, `held`, `weight`, `holders`, `ahead`
  turn,       ///< a heavier request of another agent is served first: as `limit`, and `turn_of`, `until`
  place,      ///< runs of its agent are ahead of it in the queue: `place`
  workers,    ///< every worker of the pool carries a run, or there is none: `capacity`
  shortage,   ///< the host or the budget of the fleet lacks something: `shortage`, or `detail` as an attempt met it
  agent,      ///< its agent can't run here: `detail`; empty: this daemon has no file of it
  permits,    ///< permits of this host can't be taken at all: `detail`
  network,    ///< its program waits for the network or its provider: `detail`, in the words of the program
  ending,     ///< processes of this attempt are being ended: `detail`, the reason; `beyond`
  leftovers,  ///< processes of an earlier attempt are being ended before it begins
  store,      ///< the store does not record what the run does: `detail`
  other,      ///< one that a newer daemon knows: `detail`
};
inline constexpr std::array kWaitCauses = {
    WaitCause::session, WaitCause::delay,     WaitCause::backoff, WaitCause::quota,   WaitCause::person,
    WaitCause::paused,  WaitCause::probe,     WaitCause::limit,   WaitCause::turn,    WaitCause::place,
    WaitCause::workers, WaitCause::shortage,  WaitCause::agent,   WaitCause::permits, WaitCause::network,
    WaitCause::ending,  WaitCause::leftovers, WaitCause::store,   WaitCause::other};
[[nodiscard]] std::string_view to_string(WaitCause cause) noexcept;
[[nodiscard]] std::optional<WaitCause> parse_wait_cause(std::string_view name) noexcept;
[[nodiscard]] WaitCause cause_of(Hold hold) noexcept;  ///< of a run that is not held: place

/// The resource of this host, or of the fleet, that is short, so that no run begins.
struct Shortage {
  enum class Kind : std::uint8_t {
    checkout,      ///< the folder of the project is gone: `path`
    memory,        ///< bytes that are free, and the least with which a run begins
    descriptors,   ///< file descriptors in use, and how many this process may have
    cost_per_day,  ///< micros spent today, and the most (budget.cost_per_day)
  };
  Kind kind = Kind::memory;
  std::int64_t amount = 0, bound = 0;
  std::string path{};

  friend bool operator==(const Shortage&, const Shortage&) = default;
};
inline constexpr std::array kShortageKinds = {Shortage::Kind::checkout, Shortage::Kind::memory,
                                              Shortage::Kind::descriptors, Shortage::Kind::cost_per_day};
[[nodiscard]] std::string_view to_string(Shortage::Kind kind) noexcept;
[[nodiscard]] std::optional<Shortage::Kind> parse_shortage_kind(std::string_view name) noexcept;

/// Fields that the cause does not name are empty.
struct WaitReason {
  WaitCause cause = WaitCause::place;
  std::string limit{};
  std::optional<std::uint32_t> capacity{};  ///< units of the limit, or workers
  std::int64_t held = 0;                    ///< units
  std::uint32_t weight = 1;                 ///< units that the run asks for
  std::vector<LimitEntry> holders{};        ///< the earliest first
  std::optional<std::uint32_t> ahead{};     ///< requests before it in the line of the limit
  bool indirect = false;                    ///< the first run of its agent waits for it, and this one comes after that
  std::optional<std::uint32_t> ramp{};      ///< runs that the limit admits at once
  std::string turn_of{};                    ///< agent
  std::string behind{};                     ///< id of a run
  std::optional<RunState> behind_state{};
  std::optional<std::int64_t> place{};  ///< from 1
  std::optional<WallTime> until{};
  std::optional<Shortage> shortage{};
  std::string beyond{};  ///< processes of another user, which Stint may not signal
  std::string detail{};  ///< what a program, the system or a file says, verbatim

  friend bool operator==(const WaitReason&, const WaitReason&) = default;
};

}  // namespace stint::domain
