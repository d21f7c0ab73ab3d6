/// The host limits of a project from its settings: the directories of their files, and their capacities.
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
  std::string limits;   ///< for all limits except those of agents
  std::string agents;   ///< for limits of agents; empty outside of a repository
  bool shared = false;  ///< `limits` comes from limits_dir
};
/// Fails if no variable names the user's state folder, and no setting the directory.
[[nodiscard]] Result<LimitDirectories> blocking_find_limit_directories(const agent::Project& project,
                                                                       const agent::Settings& settings,
                                                                       const agent::EnvironmentVariables& variables);

/// The capacity of a limit in the settings; none if they do not name it. `host = "auto"` is computed from free memory.
[[nodiscard]] std::optional<std::uint32_t> configured_capacity(const agent::Settings& settings, std::string_view name);

/// Whether the limit has `reach = "process"`: each node counts calls within attempts, and no run takes it as a whole.
/// Every run takes `host`, whatever its reach.
[[nodiscard]] bool counts_calls(const agent::Settings& settings, std::string_view name);

}  // namespace stint::project
