/// Where the host limits of a project live, and how large they are: what `with`, `limits` and `run` share.
#pragma once

#include "agent/project.hpp"
#include "agent/settings.hpp"
#include "cli/surroundings.hpp"
#include "limit/homes.hpp"

#include <optional>
#include <string>

namespace stint::cli {

/// The folder, the project around it and its settings. Fails if a setting is wrong: a limit must not be guessed.
struct HostPlace {
  agent::Project project;
  agent::Settings settings;
  limit::Homes homes;
};
[[nodiscard]] Result<HostPlace> blocking_find_host_place(const Surroundings& around);

/// N of a limit as the configuration says; nothing if it says nothing. `host = "auto"` is counted from free memory.
[[nodiscard]] std::optional<std::uint32_t> configured_capacity(const agent::Settings& settings, std::string_view name);

}  // namespace stint::cli
