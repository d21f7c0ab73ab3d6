/// The host limits of a project as its settings have them: the directories of their files, and their capacities.
#pragma once

#include "agent/project.hpp"
#include "agent/settings.hpp"
#include "stint/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stint::project {

/// `agent:<name>` belongs to a checkout, every other limit to the user, or to all users of `limits_dir`.
struct LimitDirectories {
  std::string limits;   ///< of every limit but an agent's
  std::string agents;   ///< of agents' limits; empty outside of a repository
  bool shared = false;  ///< `limits` was named by limits_dir
};
/// Fails if no variable names the user's state folder, and no setting the directory.
[[nodiscard]] Result<LimitDirectories> blocking_find_limit_directories(const agent::Project& project,
                                                                       const agent::Settings& settings,
                                                                       const agent::EnvironmentVariables& variables);

/// The capacity of a limit in the settings; nothing if they do not name it. `host = "auto"` is counted from free
/// memory.
[[nodiscard]] std::optional<std::uint32_t> configured_capacity(const agent::Settings& settings, std::string_view name);

/// Of `reach = "process"`: it counts calls within attempts, by node, and no run takes it as a whole. `host` is taken by
/// every run, whatever its reach.
[[nodiscard]] bool counts_calls(const agent::Settings& settings, std::string_view name);

}  // namespace stint::project
