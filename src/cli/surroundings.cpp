#include "cli/surroundings.hpp"

#include "agent/trust.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "os/terminal.hpp"
#include "os/variables.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <unistd.h>

namespace stint::cli {

Surroundings blocking_look_around() {
  Surroundings out;
  std::error_code error;
  out.folder = std::filesystem::current_path(error);
  if (error) out.folder = ".";
  out.environment = os::environment_variables();
  const auto variable = [&](const char* name) {
    const auto found = out.environment.find(name);
    return found == out.environment.end() ? std::string() : found->second;
  };
  const bool colour = variable("NO_COLOR").empty() && variable("TERM") != "dumb";
  if (const auto size = os::terminal_size(STDOUT_FILENO)) {
    out.terminal = true;
    out.columns = size->columns;
    out.colour = colour;
  }
  out.colour_errors = colour && os::terminal_size(STDERR_FILENO).has_value();
  return out;
}

Result<agent::Project> blocking_find_own_project(const Surroundings& around) {
  STINT_TRY(agent::Project project, agent::blocking_find_project(around.folder));
  const auto places = agent::user_places(around.environment);  // without them nothing was ever trusted
  STINT_CHECK(agent::blocking_check_owner(places ? places->state : "", project, around.environment));
  STINT_CHECK(agent::blocking_check_links(places ? places->state : "", project));
  return project;
}

Result<ProjectSettings> blocking_find_settings(const Surroundings& around) {
  STINT_TRY(agent::Project project, blocking_find_own_project(around));
  agent::LoadedSettings loaded = agent::blocking_load_settings(project.root, around.environment);
  for (const agent::Problem& problem : loaded.problems) {
    if (problem.severity == agent::Severity::error) return fail(Errc::invalid, describe(problem));
  }
  const agent::Setting* const retention = loaded.settings.find("retention.runs");
  if (!project.is_repository() && retention != nullptr && retention->origin.kind == agent::OriginKind::project) {
    // The store is the user's, with the runs of all such folders: none of them decides when those of others go.
    STINT_TRY(const agent::UserPlaces places, agent::user_places(around.environment));
    loaded.settings.retention = agent::blocking_load_settings(places.state, around.environment).settings.retention;
  }
  if (const auto thing = agent::setting_that_needs_trust(loaded.settings)) {
    STINT_TRY(const agent::UserPlaces places, agent::user_places(around.environment));
    STINT_TRY(const bool trusted, agent::blocking_is_trusted(places.state, project));
    if (!trusted) return fail(agent::untrusted(project, *thing));
  }
  return ProjectSettings{std::move(project), std::move(loaded.settings), std::move(loaded.problems)};
}

int complain(const Error& error) {
  print_error("stint: {}\n", printable(error.describe()));
  return kExitFailed;
}

void print_problems(std::span<const agent::Problem> problems, const Surroundings& around) {
  for (const agent::Problem& problem : problems) {
    const std::string whole = printable(describe(problem));
    const std::string severity(to_string(problem.severity));
    const std::size_t at = whole.find(severity + ": ");
    Line line;
    if (at == std::string::npos) {
      line.add(whole);
    } else {
      line.add(whole.substr(0, at));
      line.add(severity, problem.severity == agent::Severity::error ? Style::red : Style::yellow);
      line.add(whole.substr(at + severity.size()));
    }
    print_error("{}\n", line.str(around.colour_errors));
  }
}

}  // namespace stint::cli
