/// Checks that agents and settings fit together. Finds what no file can check alone, before anything
/// runs: a limit that is not defined, a weight that can never be granted, an agent that does not exist.
#pragma once

#include "agent/discovery.hpp"
#include "agent/settings.hpp"

#include <vector>

namespace stint::agent {

[[nodiscard]] std::vector<Problem> check_whole(const Catalogue& catalogue, const Settings& settings);

}  // namespace stint::agent
