/// Resolves the names of models for drivers that call them in this process: between what a checkout says (`project/`)
/// and the calls themselves (`model/`), which don't know each other.
#pragma once

#include "project/attempt_planner.hpp"
#include "project/snapshot.hpp"

#include <optional>
#include <string>

namespace stint::fleet {

[[nodiscard]] std::optional<project::FoundModel> find_model(const agent::Settings& settings, const std::string& model);
/// Reads the key, from the environment of this process or from its file.
[[nodiscard]] Result<project::ResolvedModel> blocking_resolve_model(const agent::Settings& settings,
                                                                    const std::string& model);

}  // namespace stint::fleet
