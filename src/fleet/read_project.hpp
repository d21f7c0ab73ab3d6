/// Reads the snapshot of a checkout with the drivers and the host limits of this program.
#pragma once

#include "project/snapshot.hpp"

#include <memory>

namespace stint::fleet {

[[nodiscard]] Result<std::shared_ptr<const project::Snapshot>> blocking_read_project(
    const project::Location& location, bool cluster, const project::Snapshot* before = nullptr);

}  // namespace stint::fleet
