/// The host limits that the agents of a snapshot need, as limit files: for the permits of their runs, and for
/// building the next snapshot.
#pragma once

#include "limit/host_limits.hpp"
#include "project/snapshot.hpp"

#include <string_view>
#include <vector>

namespace stint::limit {

/// For `project::SnapshotPorts`: the current capacity, and whether permits could be taken. Creates nothing.
[[nodiscard]] Result<project::HostLimitState> blocking_look_at_limit(const project::LimitDirectories& directories,
                                                                     const project::HostLimitUse& use);
/// The permits that each run of the agent needs; empty: none.
[[nodiscard]] Result<std::vector<HostRequest>> requests_of(const project::Snapshot& snapshot, std::string_view agent);
/// Whether an unusable limit has become usable.
[[nodiscard]] bool blocking_limits_usable_again(const project::Snapshot& snapshot);
/// Resizes a limit that an agent takes, or that the settings name. False: this host has no limit of that name.
[[nodiscard]] Result<bool> blocking_resize(const project::Snapshot& snapshot, const std::string& name,
                                           std::uint32_t capacity);

}  // namespace stint::limit
