/// The host limits of a project: which limits exist, and the directories of their files. Shared by `with`, `limits`
/// and `run`.
#pragma once

#include "agent/project.hpp"
#include "agent/settings.hpp"
#include "limit/homes.hpp"
#include "project/checkout.hpp"

#include <vector>

namespace stint::limit {

/// The folder, its project and its settings. Fails on a wrong setting: a limit must not be guessed.
struct HostPlace {
  agent::Project project;
  agent::Settings settings;
  std::vector<agent::Problem> warnings;  ///< about the settings
  Homes homes;
};
[[nodiscard]] Result<HostPlace> blocking_find_host_place(const project::Location& location);

/// Every limit that has files or is configured, by name. Capacity 0: only known from its files.
[[nodiscard]] std::vector<HostLimit> blocking_all_limits(const Homes& homes, const agent::Settings& settings);

}  // namespace stint::limit
