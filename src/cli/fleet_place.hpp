/// How a command reaches the fleet: through a daemon if one runs, else by opening the store itself.
///
/// A daemon is found by `STINT_URL`, or by the file that each daemon keeps beside the store of its repository.
#pragma once

#include "cli/complete.hpp"
#include "cli/environment.hpp"
#include "domain/system.hpp"
#include "fleet/fleet.hpp"
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
  bool daemon = false;            ///< a daemon answers, and carries runs
  std::string where;              ///< the daemon's address, or the store, for people
  std::string elsewhere{};        ///< the checkout that the daemon serves, if it is not ours
  store::Store* store = nullptr;  ///< null with a daemon
};

struct FleetNeeds {
  bool agents = false;       ///< reads the project's agents, if no daemon does
  bool makes_store = false;  ///< creates a missing store; else a missing store counts as empty
};
/// Returns the exit status.
using FleetBody = std::function<Task<Result<int>>(FleetAccess&)>;

/// Runs `body` until it returns or a signal cancels it, prints its error, and returns the exit status.
int run_on_fleet(const domain::System& system, const FleetNeeds& needs, const FleetBody& body);

/// The run with this id or unique prefix of one. `invalid`: none, or several.
Task<Result<engine::RunView>> find_run(fleet::Fleet& fleet, std::string id);
/// Whether any node takes runs that other processes submit. `stint run` carries only its own.
Task<Result<bool>> is_carried(const FleetAccess& access);
/// The running run whose process called this command; empty: none. Cancelling that run cancels its children.
Task<std::string> running_parent(fleet::Fleet& fleet);
inline constexpr char kNoDaemonHere[] = "no daemon runs here: `stint serve` starts one";

/// The newest runs, for completion. Never fails: empty on any error.
[[nodiscard]] std::vector<Candidate> blocking_run_names(const domain::System& system);

}  // namespace stint::cli
