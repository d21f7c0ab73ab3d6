/// A run that waits for a child of its own must not hold what the child needs: the child would wait for the parent, and
/// the parent for the child, until the budget ends. Pure.
#pragma once

#include "fleet/fleet.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stint::fleet {

using LimitNeeds = std::map<std::string, std::uint64_t>;  ///< units by limit

/// A running run above the child.
struct RunAbove {
  std::string id;
  LimitNeeds needs;     ///< of its agent
  bool shares = false;  ///< `stint run` carries it: limits that a run above it holds are not counted again
};

/// Fails with `conflict` if the units that `above` (the parent first, then its parent, ...) holds leave too few for
/// `needs`: no end of another run can help then. Runs that are not above the child are not counted.
[[nodiscard]] Result<> check_awaited(const std::string& agent, const LimitNeeds& needs,
                                     const std::vector<RunAbove>& above, const std::vector<LimitView>& limits);

/// What a run of the agent needs to begin. Every run takes one unit of `host`, if there is such a limit.
[[nodiscard]] LimitNeeds needs_of(const domain::Agent& agent);

}  // namespace stint::fleet
