#include "cli/pause.hpp"

#include "agent/quantity.hpp"
#include "cli/fleet_place.hpp"
#include "cli/fleet_text.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "cli/settle.hpp"
#include "engine/views.hpp"
#include "wire/fleet.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stint::cli {
namespace {

/// The limit with this name, or the limit of the agent with this name. None: neither exists.
Task<Result<std::optional<std::string>>> find_limit(fleet::Fleet& fleet, const std::string& name) {
  STINT_CO_TRY(const std::vector<engine::LimitView> limits, co_await fleet.limits());
  const std::string of_agent = domain::agent_limit(name);
  const auto is_there = [&](const std::string& limit) {
    return std::ranges::find(limits, limit, &engine::LimitView::name) != limits.end();
  };
  if (is_there(name)) co_return name;
  if (is_there(of_agent)) co_return of_agent;
  STINT_CO_TRY(const std::vector<engine::AgentView> agents, co_await fleet.agents());
  for (const engine::AgentView& agent : agents) {
    if (agent.name == name || domain::agent_limit(agent.name) == name) co_return domain::agent_limit(agent.name);
  }
  co_return std::nullopt;
}

Task<Result<int>> pause(FleetAccess& access, const std::string& name, std::optional<Duration> length, bool json) {
  std::string limit;
  if (!name.empty()) {
    STINT_CO_TRY(const std::optional<std::string> found, co_await find_limit(access.fleet, name));
    // An account, or another limit of agents that have never run: the fleet checks whether an agent takes it.
    if (!found && !name.contains(':')) {
      complain(Error(Errc::invalid, "there is neither an agent nor a limit '" + name +
                                        "'. `stint agents` and `stint limits` list them"));
      co_return kExitUsage;
    }
    limit = found.value_or(name);
  }
  const Result<> paused = co_await access.fleet.pause(limit, length);
  if (!paused && paused.error() == Errc::invalid) {
    complain(paused.error());
    co_return kExitUsage;
  }
  STINT_CO_CHECK(paused);
  if (json) {
    STINT_CO_TRY(const std::vector<engine::LimitView> limits, co_await access.fleet.limits());
    print_out("{}\n", wire::to_json(limits));
    co_return kExitDone;
  }
  print_out("{} paused{}. Runs under way go on; `stint resume{}` lets new ones begin.\n",
            limit.empty() ? "All agents are" : printable(limit) + " is",
            length ? " for " + length_text(*length) : std::string(), limit.empty() ? "" : " " + printable(limit));
  co_return kExitDone;
}

Task<Result<int>> resume(FleetAccess& access, const std::string& name, bool json) {
  std::string limit;
  if (!name.empty()) {
    STINT_CO_TRY(const std::optional<std::string> found, co_await find_limit(access.fleet, name));
    if (!found) {
      STINT_CO_TRY(const std::optional<engine::RunView> view, co_await access.fleet.find(name));
      if (!view) {
        complain(Error(Errc::invalid, "there is no agent, limit or run '" + name +
                                          "'. `stint agents`, `stint limits` and `stint ls` list them"));
        co_return kExitUsage;
      }
      co_return co_await answer_run(access, view->run.id, json);
    }
    limit = *found;
  }
  STINT_CO_TRY(const std::uint64_t woken, co_await access.fleet.resume(limit));
  if (json) {
    print_out("{}\n", wire::resumed_to_json(woken));
    co_return kExitDone;
  }
  print_out("{} resumed{}.\n", limit.empty() ? "All limits are" : printable(limit) + " is",
            woken > 0 ? "; " + some(woken, "run") + " woken" : std::string());
  co_return kExitDone;
}

}  // namespace

PauseCommand::PauseCommand(CLI::App& app)
    : command_(app, "pause", "Pause an agent, a limit, or all agents: no new runs begin") {
  command_.footer("Runs under way go on. An account is a limit, too: stint pause account:anthropic --for 1h.");
  command_.option("NAME", name_, "Pause this agent or limit; default: all agents").value("");
  command_.option("--for", length_, "End the pause after this time; default: until `stint resume`").value("DURATION");
  command_.flag("--json", json_, "Print one JSON object: all limits");
}
bool PauseCommand::chosen() const { return command_.chosen(); }
int PauseCommand::run(const domain::System& system) {
  std::optional<Duration> length;
  if (!length_.empty()) {
    const auto parsed = agent::parse_duration(length_);
    if (!parsed) {
      complain(parsed.error());
      return kExitUsage;
    }
    length = *parsed;
  }
  return run_on_fleet(system, {.agents = true, .makes_store = true},
                      [&, this](FleetAccess& access) { return pause(access, name_, length, json_); });
}

ResumeCommand::ResumeCommand(CLI::App& app) : command_(app, "resume", "End a pause, or let a parked run go on") {
  command_.footer(
      "Wakes the runs parked on the limit: one goes first, the others follow in order. With a run's id it does what\n"
      "`stint answer` does.");
  command_.option("NAME", name_, "Resume this agent, limit or run; default: everything that is paused").value("");
  command_.flag("--json", json_, "Print one JSON object");
}
bool ResumeCommand::chosen() const { return command_.chosen(); }
int ResumeCommand::run(const domain::System& system) {
  return run_on_fleet(system, {.agents = true}, [this](FleetAccess& access) { return resume(access, name_, json_); });
}

}  // namespace stint::cli
