#include "cli/trust.hpp"

#include "agent/trust.hpp"
#include "cli/environment.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "wire/agents.hpp"

#include <fmt/format.h>

namespace stint::cli {
namespace {

int blocking_print_list(const std::filesystem::path& state, bool json) {
  const auto records = agent::blocking_list_trust(state);
  if (!records) return complain(records.error());
  if (json) {
    print_out("{}\n", wire::trust_to_json(*records));
    return kExitDone;
  }
  if (records->empty()) print_out("Nothing is trusted.\n");
  for (const agent::TrustRecord& record : *records) {
    print_out("{}{}\n", printable(record.identity.string()),
              record.holds ? "" : "  (no longer valid: the folder is gone, or another one)");
  }
  return kExitDone;
}

}  // namespace

TrustCommand::TrustCommand(CLI::App& app)
    : command_(app, "trust", "Trust this checkout: let its commands run on this machine") {
  command_.footer(
      "A clone can contain commands, arguments for agent CLIs, a gate command and addresses that keys are sent to.\n"
      "Stint uses them only after `stint trust`, once per repository. It covers all worktrees and later changes.");
  const Option list = command_.flag("--list", list_, "List what is trusted");
  command_.flag("--revoke", revoke_, "Revoke the trust of this repository").excludes(list);
  command_.flag("--json", json_, "Print one JSON object");
}

bool TrustCommand::chosen() const { return command_.chosen(); }

int TrustCommand::run() {
  const Environment environment = blocking_read_environment();
  const auto places = agent::user_places(environment.variables);
  if (!places) return complain(places.error());
  if (list_) return blocking_print_list(places->state, json_);
  const auto project = agent::blocking_find_project(environment.folder);
  if (!project) return complain(project.error());
  if (!revoke_ && environment.variables.contains("STINT_RUN")) {
    return complain(
        {Errc::denied, "STINT_RUN is set: an agent can't grant trust. Run `stint trust` in a shell of your own"});
  }

  const agent::LoadedSettings loaded = agent::blocking_load_settings(project->root, environment.variables);
  wire::TrustAnswer answer{*project, !revoke_,
                           agent::things_that_need_trust(agent::blocking_discover(project->root), loaded.settings)};
  for (auto& thing : agent::blocking_find_cli_settings(project->root)) answer.things.push_back(std::move(thing));
  for (auto& thing : agent::blocking_find_git_things(*project)) answer.things.push_back(std::move(thing));
  bool changed = true;
  if (revoke_) {
    const auto revoked = agent::blocking_revoke_trust(places->state, *project);
    if (!revoked) return complain(revoked.error());
    changed = *revoked;
  } else if (const auto trusted = agent::blocking_trust(places->state, *project); !trusted) {
    return complain(trusted.error());
  }
  if (json_) {
    print_out("{}\n", wire::to_json(answer));
    return kExitDone;
  }
  const std::string root = printable(project->root.string());
  if (revoke_) {
    print_out("{} {}\n", root, changed ? "is no longer trusted." : "was not trusted.");
    return kExitDone;
  }
  print_out("{} is trusted. These may run or be used from now on, and what later changes add:\n", root);
  for (const agent::TrustedThing& thing : answer.things) {
    print_out("  {}  {}\n", printable(thing.what),
              Line("(" + printable(thing.where) + ")", Style::dim).str(environment.colour));
  }
  if (answer.things.empty()) print_out("  nothing yet\n");
  print_out("`stint trust --revoke` revokes it.\n");
  return kExitDone;
}

}  // namespace stint::cli
