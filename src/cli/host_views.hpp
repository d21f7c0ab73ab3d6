/// The limits of this host as a fleet tells of them.
#pragma once

#include "cli/book.hpp"
#include "engine/fleet.hpp"

#include <vector>

namespace stint::cli {

/// Every limit that has files, is configured or is in `requests`, with holders and waiters in words. Looks at a few
/// files.
[[nodiscard]] std::vector<engine::LimitView> blocking_host_limits(const HostPlace& place, WallTime now,
                                                                  const HostRequests* requests = nullptr);

}  // namespace stint::cli
