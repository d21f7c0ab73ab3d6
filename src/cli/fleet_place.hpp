/// Runs the body of a command on the fleet, which a daemon or the store itself answers for (fleet/connection.hpp).
#pragma once

#include "cli/complete.hpp"
#include "cli/environment.hpp"
#include "domain/system.hpp"
#include "engine/views.hpp"
#include "fleet/connection.hpp"
#include "stint/executor.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stint {
class Reactor;
}

namespace stint::cli {

/// What a command works with.
struct FleetAccess {
  fleet::Fleet& fleet;
  Reactor& reactor;
  const Executor& clock;  ///< the same reactor
  const Environment& environment;
  const domain::System& system;
  fleet::Connection& connection;
};

/// Gives the exit status.
using FleetBody = std::function<Task<Result<int>>(FleetAccess&)>;

/// Runs `body` until it ends or a signal ends it, says what went wrong, and gives the exit status.
int run_on_fleet(const domain::System& system, const fleet::ConnectionNeeds& needs, const FleetBody& body);

/// The run with this id or unique prefix of one. `invalid`: none, or several.
Task<Result<engine::RunView>> find_run(fleet::Fleet& fleet, std::string id);
inline constexpr char kNoDaemonHere[] = "no daemon runs here: `stint serve` starts one";

/// The newest runs, for completion. Never fails: empty on any error.
[[nodiscard]] std::vector<Candidate> blocking_run_names(const domain::System& system);

}  // namespace stint::cli
