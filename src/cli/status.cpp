#include "cli/status.hpp"

#include "cli/fleet_place.hpp"
#include "cli/fleet_text.hpp"
#include "cli/print.hpp"
#include "cli/status_text.hpp"
#include "engine/views.hpp"
#include "wire/fleet.hpp"

#include <fmt/format.h>

namespace stint::cli {
namespace {

constexpr std::uint32_t kRunsShown = 20;

Task<Result<int>> show_status(FleetAccess& access, bool json) {
  STINT_CO_TRY(const engine::FleetStatus status, co_await access.fleet.status());
  if (json) {
    print_out("{}\n", wire::to_json(status));
    co_return kExitDone;
  }
  STINT_CO_TRY(const std::vector<engine::LimitView> limits, co_await access.fleet.limits());
  store::Filter filter;
  filter.states = {domain::RunState::running};
  filter.most = kRunsShown;
  STINT_CO_TRY(const std::vector<engine::RunView> running, co_await access.fleet.list(std::move(filter)));
  const int columns = access.environment.terminal ? access.environment.columns : 0;
  const auto print = [&](const Line& line) {
    print_out("{}\n", (columns > 0 ? line.clipped(columns, true) : line).str(access.environment.colour));
  };
  const WallTime now = access.system.wall_now();
  for (const Line& line : summary_lines(status, access.connection.where(), access.connection.is_daemon())) print(line);
  for (const Line& line : limit_lines(limits, now, limits.size())) print(line);
  if (const std::string text = advice(status); !text.empty()) print(Line("  " + text, Style::yellow));
  if (!running.empty()) {
    print_out("\n");
    for (const Line& line : runs_table(running, now).lines(columns, kRunsElastic)) print(line);
    const auto counted = status.stats.runs.find(domain::RunState::running);
    if (counted != status.stats.runs.end() && counted->second > running.size()) {
      print_out("and {} more: stint ls --state running --all\n", counted->second - running.size());
    }
  }
  co_return kExitDone;
}

}  // namespace

StatusCommand::StatusCommand(CLI::App& app)
    : command_(app, "status", "Show the fleet: daemon, pool, queue, limits, running runs, today's cost") {
  command_.footer("Without a daemon it shows what is in the store. `stint top` shows the fleet live.");
  command_.flag("--json", json_, "Print one JSON object");
}

bool StatusCommand::chosen() const { return command_.chosen(); }

int StatusCommand::run(const domain::System& system) {
  return run_on_fleet(system, {}, [this](FleetAccess& access) { return show_status(access, json_); });
}

}  // namespace stint::cli
