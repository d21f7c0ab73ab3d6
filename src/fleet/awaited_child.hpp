/// Prevents a deadlock: a run that waits for its child must not hold permits that the child needs, else both would wait
/// until the budget ends. Pure.
#pragma once

#include "fleet/fleet.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stint::fleet {

using LimitNeeds = std::map<std::string, std::uint64_t>;  ///< units by limit

/// A running ancestor of the child.
struct Ancestor {
  std::string id;
  LimitNeeds needs;     ///< of its agent
  bool shares = false;  ///< `stint run` carries it: it shares the permits of its ancestors
};

/// Fails with `conflict` if the units that `above` (the parent first, then its parent, …) holds leave too few for
/// `needs`: then the child could never begin. Other runs are not counted, since they will end.
[[nodiscard]] Result<> check_awaited(const std::string& agent, const LimitNeeds& needs,
                                     const std::vector<Ancestor>& above, const std::vector<LimitView>& limits);

/// Units that a run of the agent needs to begin. Every run takes one unit of `host`, if that limit exists.
[[nodiscard]] LimitNeeds needs_of(const domain::Agent& agent);

}  // namespace stint::fleet
