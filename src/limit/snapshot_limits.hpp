/// The host limits that the agents of a snapshot need, as limit files: for the permits of their runs, and for reading
/// the next snapshot.
#pragma once

#include "limit/host_limits.hpp"
#include "project/snapshot.hpp"

#include <string_view>
#include <vector>

namespace stint::limit {

/// For `project::SnapshotPorts`: the capacity in force, and whether permits could be taken. Makes nothing.
[[nodiscard]] Result<project::HostLimitState> blocking_look_at_limit(const project::LimitDirectories& directories,
                                                                     const project::HostLimitUse& use);
/// The permits that each run of the agent needs; empty: none.
[[nodiscard]] Result<std::vector<HostRequest>> requests_of(const project::Snapshot& snapshot, std::string_view agent);
/// Whether a limit that could not be used can be used now.
[[nodiscard]] bool blocking_limits_mended(const project::Snapshot& snapshot);
/// Resizes a limit that an agent takes, or that the settings name. False: this host has no limit of that name.
[[nodiscard]] Result<bool> blocking_resize(const project::Snapshot& snapshot, const std::string& name,
                                           std::uint32_t capacity);

}  // namespace stint::limit
