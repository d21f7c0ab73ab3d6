/// The limits of this host as views of a fleet.
#pragma once

#include "fleet/fleet.hpp"
#include "limit/host_place.hpp"
#include "limit/snapshot_limits.hpp"

#include <vector>

namespace stint::fleet {

/// Every limit that has files, is configured, or is taken by an agent of the snapshot, with holders and waiters. Reads
/// a few files.
[[nodiscard]] std::vector<engine::LimitView> blocking_host_limits(const limit::Homes& homes,
                                                                  const agent::Settings& settings,
                                                                  const project::Snapshot* snapshot = nullptr);

}  // namespace stint::fleet
