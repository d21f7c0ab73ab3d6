/// How a command reaches the fleet: by a daemon, if one is there, else by opening the store itself.
///
/// A daemon is named by `STINT_URL`, or by the file that each leaves beside the store of its repository while it lives.
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

/// What a command has to do with.
struct FleetAccess {
  fleet::Fleet& fleet;
  Reactor& reactor;
  const Executor& clock;  ///< the same
  const Environment& environment;
  const domain::System& system;
  bool daemon = false;            ///< another process answers, and carries runs
  std::string where;              ///< its address, or the store, for people
  std::string elsewhere{};        ///< the checkout that it serves, if that is another than ours
  store::Store* store = nullptr;  ///< without a daemon
};

struct FleetNeeds {
  bool agents = false;       ///< the project's agents, where there is no daemon that knows them
  bool makes_store = false;  ///< a store that is not there yet is made; else it counts as empty
};
/// Gives the exit status.
using FleetBody = std::function<Task<Result<int>>(FleetAccess&)>;

/// Runs `body` until it ends or a signal ends it, says what went wrong, and gives the exit status.
int run_on_fleet(const domain::System& system, const FleetNeeds& needs, const FleetBody& body);

/// The id of the run that is meant by an id or the beginning of one. `invalid`: none, or several.
Task<Result<engine::RunView>> find_run(fleet::Fleet& fleet, std::string id);
/// Whether any process takes runs now that others submit. `stint run` carries its own alone.
Task<Result<bool>> is_carried(const FleetAccess& access);
/// The run of this fleet in whose process this command was called; empty: none that runs now. A child of it ends with
/// it.
Task<std::string> running_parent(fleet::Fleet& fleet);
inline constexpr char kNoDaemonHere[] = "no daemon runs here: `stint serve` starts one";

/// The newest runs, for completion. Never fails: none if anything is wrong.
[[nodiscard]] std::vector<Candidate> blocking_run_names(const domain::System& system);

}  // namespace stint::cli
