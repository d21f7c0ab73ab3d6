/// A limit of a store, as a claim sees it while nobody else can: what is held of it, whether it is paused, whose turn
/// it is. How many runs may start is decided here. Pure; the stores that decide in SQL are compared with it.
///
/// Turns: a heavy request that does not fit takes the limit's turn, and others leave the limit alone until it was
/// served, has nothing left to start, or its turn lapses. Then another agent must be served before it may take the
/// next, or the light ones would starve instead of the heavy one. A turn is taken only where no limit of the set has
/// another's, so turns never wait for each other in a circle.
#pragma once

#include "stint/time.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace stint::domain {

inline constexpr Duration kTurn = std::chrono::seconds(2);  // renewed by asking again
inline constexpr std::uint32_t kRampMax = 64;               // a ramp that comes so far is over

struct LimitLoad {
  std::optional<std::uint32_t> capacity;  ///< none: it is there to be paused
  std::uint32_t weight = 1;               ///< of each run of the asking agent
  bool shared = false;                    ///< used by several agents
  bool paused = false;
  std::optional<std::uint32_t> ramp;  ///< after a pause: runs allowed at once; 1 is the probe
  std::int64_t units = 0;             ///< held
  std::int64_t runs = 0;              ///< that hold them
  std::optional<std::int64_t> turn_of;
  bool turn_lapsed = false;                  ///< or its agent has nothing to start
  std::optional<std::int64_t> last_turn_of;  ///< not again before another agent was served
};

struct LimitAnswer {
  std::optional<std::int64_t> free;     ///< runs that may start now; none: no limit
  std::vector<std::size_t> take_turn;   ///< indices of limits
  std::vector<std::size_t> clear_turn;  ///< … on which the agent's turn ends, or another's last one is forgotten
};
/// `agent` asks for permits of all `limits` together.
[[nodiscard]] LimitAnswer ask_limits(std::int64_t agent, const std::vector<LimitLoad>& limits);

/// An account that was paused is tried by one run first, and then by more: what was wrong may still be. What a person
/// paused for another reason is not.
[[nodiscard]] bool is_probed(std::string_view limit) noexcept;
/// The ramp after a success of one of its runs; none: it is over.
[[nodiscard]] std::optional<std::uint32_t> wider_ramp(std::uint32_t ramp,
                                                      std::optional<std::uint32_t> capacity) noexcept;

}  // namespace stint::domain
