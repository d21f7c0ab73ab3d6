/// The host limits of a project: the directories of their files, and which there are. Shared by `with`, `limits` and
/// `run`.
#pragma once

#include "agent/project.hpp"
#include "agent/settings.hpp"
#include "limit/homes.hpp"
#include "project/checkout.hpp"

#include <vector>

namespace stint::limit {

/// The folder, the project around it and its settings. Fails if a setting is wrong: a limit must not be guessed.
struct HostPlace {
  agent::Project project;
  agent::Settings settings;
  std::vector<agent::Problem> warnings;  ///< of the settings
  Homes homes;
};
[[nodiscard]] Result<HostPlace> blocking_find_host_place(const project::Location& location);

/// Every limit that has files, and every configured one, by name. Capacity 0: only its files know.
[[nodiscard]] std::vector<HostLimit> blocking_all_limits(const Homes& homes, const agent::Settings& settings);

}  // namespace stint::limit
