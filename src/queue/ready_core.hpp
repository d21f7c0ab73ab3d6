/// Shares free workers among agents. Pure.
///
/// The run that is due first goes first, and a step of priority is worth ten minutes (the store's rank has both). So
/// that a thousand runs of one agent don't block the others, each running run of an agent counts against it like half a
/// minute: an agent without running runs gets a worker before one with many, unless the other has waited longer by that
/// much. No agent starves: the rank of a waiting run is fixed, and new runs get ever later ranks.
#pragma once

#include "stint/time.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace stint::queue {

inline constexpr Duration kShareStep = std::chrono::seconds(30);

/// An agent with ready runs.
struct Candidate {
  std::string agent;
  std::uint32_t runs = 0;     ///< ready to start now
  std::int64_t rank_ms = 0;   ///< of the first of them
  std::uint32_t running = 0;  ///< runs of this agent that this node carries
};
struct Share {
  std::string agent;
  std::uint32_t workers = 0;

  friend bool operator==(const Share&, const Share&) = default;
};
/// In serving order; agents that get no worker are left out.
[[nodiscard]] std::vector<Share> share(std::vector<Candidate> candidates, std::uint32_t workers);

}  // namespace stint::queue
