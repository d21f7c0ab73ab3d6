/// Decides how many runs may start under the limits of a store. A claim passes each limit's state, read under the
/// store's lock: units held, pause, turn. Pure; the stores that decide in SQL are compared with it.
///
/// Turns: an agent whose heavy request does not fit takes the limit's turn. Other agents then get nothing from the
/// limit until that request was served, has nothing left to start, or its turn lapses. After that another agent must be
/// served before the first may take the next turn, or the light requests would starve instead of the heavy one. An
/// agent takes a turn only if no limit of its set is another agent's turn, so turns never wait for each other in a
/// cycle.
#pragma once

#include "domain/numbers.hpp"
#include "stint/time.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace stint::domain {

inline constexpr Duration kTurn = std::chrono::seconds(2);  // each further claim renews it
inline constexpr std::uint32_t kRampMax = 64;               // a ramp ends when it reaches this

struct LimitLoad {
  std::optional<std::uint32_t> capacity;  ///< none: unlimited, the limit exists only to be paused
  std::uint32_t weight = 1;               ///< of each run of the asking agent
  bool shared = false;                    ///< used by several agents
  bool paused = false;
  std::optional<std::uint32_t> ramp;        ///< after a pause: runs allowed at once; 1 is the probe
  std::int64_t units = 0;                   ///< held
  std::int64_t runs = 0;                    ///< runs that hold them
  std::optional<AgentNumber> turn_of;       ///< agent
  bool turn_lapsed = false;                 ///< the turn is over, or its agent has nothing to start
  std::optional<AgentNumber> last_turn_of;  ///< may not take a turn before another agent was served
};

struct LimitAnswer {
  std::optional<std::int64_t> free;       ///< runs that may start now; none: unlimited
  std::optional<std::size_t> blocked_by;  ///< index of the limit that admits the fewest, if no run may start
  std::vector<std::size_t> take_turn;     ///< indices of limits whose turn the agent takes
  std::vector<std::size_t> clear_turn;    ///< … on which the agent's turn ends, or another agent's last turn is cleared
};
/// Answers `agent`, which requests permits of all `limits` together.
[[nodiscard]] LimitAnswer ask_limits(AgentNumber agent, const std::vector<LimitLoad>& limits);

/// Whether a limit is probed after a pause: an account admits one run at first and then more, because the cause of the
/// pause may persist. Other limits are not probed.
[[nodiscard]] bool is_probed(std::string_view limit) noexcept;
/// The ramp after a success of one of its runs; none: it is over.
[[nodiscard]] std::optional<std::uint32_t> wider_ramp(std::uint32_t ramp,
                                                      std::optional<std::uint32_t> capacity) noexcept;

}  // namespace stint::domain
