/// A checkout and its settings, found from a folder and the environment variables of a process.
#pragma once

#include "agent/project.hpp"
#include "agent/settings.hpp"
#include "stint/error.hpp"

#include <filesystem>
#include <vector>

namespace stint::project {

/// The folder and variables from which a process finds its project.
struct Location {
  std::filesystem::path folder;
  agent::EnvironmentVariables variables;
};

/// The project around the folder. Fails if it belongs to another user and is not trusted.
[[nodiscard]] Result<agent::Project> blocking_find_own_project(const Location& location);

struct Checkout {
  agent::Project project;
  agent::Settings settings;
  std::vector<agent::Problem> warnings;  ///< unknown keys, for the commands that use agents
};
/// The project around the folder, and its settings. Fails if a setting is wrong: there is no safe guess. Fails if the
/// checkout is not trusted and its settings decide where data goes.
[[nodiscard]] Result<Checkout> blocking_read_checkout(const Location& location);

}  // namespace stint::project
