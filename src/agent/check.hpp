/// The whole: agents and settings fit together. What one file can't know of another is checked here, before anything
/// runs: a limit that nobody defined, a weight that can never be granted, an agent that does not exist.
#pragma once

#include "agent/discovery.hpp"
#include "agent/settings.hpp"

#include <vector>

namespace stint::agent {

[[nodiscard]] std::vector<Problem> check_whole(const Catalogue& catalogue, const Settings& settings);

}  // namespace stint::agent
