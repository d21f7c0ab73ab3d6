/// Formats the state of a fleet: what `status` prints and `top` draws above its runs. Pure.
#pragma once

#include "cli/demo_text.hpp"
#include "engine/views.hpp"
#include "fleet/fleet.hpp"

#include <string>
#include <vector>

namespace stint::cli {

/// `[#####.....]`, `columns` wide.
[[nodiscard]] std::string bar_text(double share, int columns);
/// Phase, pool, queue, cost. `where`: the daemon's address or the store.
[[nodiscard]] std::vector<Line> summary_lines(const engine::FleetStatus& status, const std::string& where, bool daemon);
/// Limits that are held, waited for or paused; at most `most`.
[[nodiscard]] std::vector<Line> limit_lines(const std::vector<engine::LimitView>& limits, WallTime now,
                                            std::size_t most);
/// Advice for a pool that is too small or too large; empty: none.
[[nodiscard]] std::string advice(const engine::FleetStatus& status);

}  // namespace stint::cli
