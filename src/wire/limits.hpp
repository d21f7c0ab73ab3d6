/// Host limits as JSON, for `stint limits --json`.
#pragma once

#include "domain/system.hpp"
#include "limit/listing.hpp"

#include <string>
#include <vector>

namespace stint::wire {

[[nodiscard]] std::string limits_to_json(const std::vector<limit::Listing>& limits, WallTime now);

}  // namespace stint::wire
