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

/// Fails with `conflict` if the units that `above` (ids of running runs: the parent, then its parent, …) hold leave too
/// few for `needs`: then the child could never begin. Other runs are not counted, since they will end. What a run holds
/// is read from the holders of `limits`.
[[nodiscard]] Result<> check_awaited(const std::string& agent, const LimitNeeds& needs,
                                     const std::vector<std::string>& above, const std::vector<LimitView>& limits);

/// Units that a run of the agent needs to begin. Every run takes one unit of `host`, if that limit exists.
[[nodiscard]] LimitNeeds needs_of(const domain::Agent& agent);

}  // namespace stint::fleet
