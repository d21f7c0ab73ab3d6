#include "cli/status.hpp"

#include "cli/fleet_place.hpp"
#include "cli/fleet_text.hpp"
#include "cli/print.hpp"
#include "cli/status_text.hpp"
#include "wire/fleet.hpp"

#include <fmt/format.h>

namespace stint::cli {
namespace {

constexpr std::size_t kRunsShown = 20;

Task<Result<int>> show_status(FleetAccess& access, bool json) {
  STINT_CO_TRY(engine::FleetStatus status, co_await access.fleet.status());
  if (json) {
    print_out("{}\n", wire::to_json(status));
    co_return kExitDone;
  }
  const int columns = access.around.terminal ? access.around.columns : 0;
  const auto print = [&](const Line& line) {
    print_out("{}\n", (columns > 0 ? line.clipped(columns, true) : line).str(access.around.colour));
  };
  const WallTime now = access.ambient.wall_now();
  for (const Line& line : summary_lines(status, access.where, access.daemon)) print(line);
  for (const Line& line : limit_lines(status.limits, now, status.limits.size())) print(line);
  if (const std::string text = advice(status); !text.empty()) print(Line("  " + text, Style::yellow));
  if (!status.running.empty()) {
    print_out("\n");
    const std::size_t more = status.running.size() - std::min(status.running.size(), kRunsShown);
    status.running.resize(status.running.size() - more);
    for (const Line& line : runs_table(status.running, now).lines(columns, kRunsElastic)) print(line);
    if (more > 0) print_out("and {} more: stint ls --state running --all\n", more);
  }
  co_return kExitDone;
}

}  // namespace

StatusCommand::StatusCommand(CLI::App& app)
    : command_(app, "status", "The fleet on one screen: daemon, pool, queue, limits, what runs, cost of today") {
  command_.footer("Without a daemon: what the store knows. `stint top` shows it live.");
  command_.flag("--json", json_, "One JSON object");
}

bool StatusCommand::chosen() const { return command_.chosen(); }

int StatusCommand::run(const domain::Ambient& ambient) {
  return run_on_fleet(ambient, {}, [this](FleetAccess& access) { return show_status(access, json_); });
}

}  // namespace stint::cli
