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

/// Replaces the requests of this process, one per agent, by the queued runs for which they stand, in the place of the
/// first of them. `state`: the same limit as the store knows it. Runs for which units are free are not in line: they
/// wait for a worker. `waiting` counts all runs, whether the line lists them or not. Pure.
void put_runs_in_line(engine::LimitView& view, store::LimitState state, std::int64_t own_pid);
void number_places(std::vector<domain::LimitEntry>& line);

}  // namespace stint::fleet
