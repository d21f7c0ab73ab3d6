/// Where the host limits of a project live, and how large they are: what `with`, `limits` and `run` share.
#pragma once

#include "agent/project.hpp"
#include "agent/settings.hpp"
#include "cli/surroundings.hpp"
#include "limit/homes.hpp"

#include <optional>
#include <string>
#include <vector>

namespace stint::cli {

/// The folder, the project around it and its settings. Fails if a setting is wrong: a limit must not be guessed.
struct HostPlace {
  agent::Project project;
  agent::Settings settings;
  std::vector<agent::Problem> warnings;  ///< of the settings
  limit::Homes homes;
};
[[nodiscard]] Result<HostPlace> blocking_find_host_place(const Surroundings& around);
/// Where the limits of a project are. Fails without a home.
[[nodiscard]] Result<limit::Homes> blocking_find_homes(const agent::Project& project, const agent::Settings& settings,
                                                       const agent::Environment& environment);

/// N of a limit as the configuration says; nothing if it says nothing. `host = "auto"` is counted from free memory.
[[nodiscard]] std::optional<std::uint32_t> configured_capacity(const agent::Settings& settings, std::string_view name);
/// Every limit that has files, and every configured one, by name. Capacity 0: only its files know.
[[nodiscard]] std::vector<limit::HostLimit> blocking_all_limits(const limit::Homes& homes,
                                                                const agent::Settings& settings);

}  // namespace stint::cli
