/// What a command finds when it starts: folder, environment, terminal, project, agents, settings. Looked at once; then
/// it is a value, so that commands can be tried without a process.
#pragma once

#include "agent/discovery.hpp"
#include "agent/project.hpp"
#include "agent/settings.hpp"
#include "cli/demo_text.hpp"

#include <filesystem>
#include <span>
#include <string>

namespace stint::cli {

// Exit statuses of every command but `with`.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

struct Surroundings {
  std::filesystem::path folder;
  agent::Environment environment;
  bool terminal = false;       ///< stdout is one
  bool colour = false;         ///< a terminal, and NO_COLOR does not say otherwise
  bool colour_errors = false;  ///< the same of stderr
  int columns = 80;
};
[[nodiscard]] Surroundings blocking_look_around();

/// The project around the folder. Fails if it belongs to another user and is not trusted.
[[nodiscard]] Result<agent::Project> blocking_find_own_project(const Surroundings& around);

/// The project around the folder, and its settings. Fails if one is wrong: what it says must not be guessed. Fails if
/// the checkout is not trusted and would decide where data goes.
struct ProjectSettings {
  agent::Project project;
  agent::Settings settings;
  std::vector<agent::Problem> warnings;  ///< unknown keys, for the commands that use agents
};
[[nodiscard]] Result<ProjectSettings> blocking_find_settings(const Surroundings& around);

/// Prints "stint: …" to stderr; gives kExitFailed.
int complain(const Error& error);
/// Prints problems to stderr, one line each.
void print_problems(std::span<const agent::Problem> problems, const Surroundings& around);

}  // namespace stint::cli
