/// Which agents get the workers that are free: pure.
///
/// What is due first goes first, a step of priority counting as ten minutes (the store's rank has both). So that one
/// agent's thousand runs don't keep everybody else waiting, each run that an agent has under way counts against it like
/// half a minute: an agent with nothing under way gets a worker before one with many, unless the other has waited
/// longer by so much. Nobody starves: ranks of those that wait stand still, and everybody else's come later and later.
#pragma once

#include "stint/time.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace stint::queue {

inline constexpr Duration kShareStep = std::chrono::seconds(30);

/// An agent with something to do.
struct Candidate {
  std::string agent;
  std::uint32_t runs = 0;     ///< that could start now
  std::int64_t rank_ms = 0;   ///< of the first
  std::uint32_t running = 0;  ///< of this agent, here
};
struct Share {
  std::string agent;
  std::uint32_t workers = 0;

  friend bool operator==(const Share&, const Share&) = default;
};
/// In the order in which they are to be served; agents that get none are left out.
[[nodiscard]] std::vector<Share> share(std::vector<Candidate> candidates, std::uint32_t workers);

}  // namespace stint::queue
