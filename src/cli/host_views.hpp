/// The limits of this host as a fleet tells of them.
#pragma once

#include "cli/host_homes.hpp"
#include "engine/fleet.hpp"

#include <vector>

namespace stint::cli {

/// Every limit that has files or is configured, with holders and waiters in words. Looks at a few files.
[[nodiscard]] std::vector<engine::LimitView> blocking_host_limits(const HostPlace& place, WallTime now);

}  // namespace stint::cli
