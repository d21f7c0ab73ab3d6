#include "cli/fleet_commands.hpp"

namespace stint::cli {

FleetCommands::FleetCommands(CLI::App& app)
    : submit_(app),
      list_(app),
      show_(app),
      logs_(app),
      why_(app),
      cancel_(app),
      retry_(app),
      resolve_(app),
      inbox_(app),
      answer_(app),
      pause_(app),
      resume_(app),
      status_(app),
      top_(app),
      cost_(app),
      open_(app),
      scale_(app),
      drain_(app) {}

std::optional<int> FleetCommands::run(const domain::System& system) {
  std::optional<int> status;
  const auto attempt = [&](auto& command) {
    if (!status && command.chosen()) status = command.run(system);
  };
  attempt(submit_);
  attempt(list_);
  attempt(show_);
  attempt(logs_);
  attempt(why_);
  attempt(cancel_);
  attempt(retry_);
  attempt(resolve_);
  attempt(inbox_);
  attempt(answer_);
  attempt(pause_);
  attempt(resume_);
  attempt(status_);
  attempt(top_);
  attempt(cost_);
  attempt(open_);
  attempt(scale_);
  attempt(drain_);
  return status;
}

}  // namespace stint::cli
