/// The run that this process is a part of.
#pragma once

#include "fleet/fleet.hpp"

#include <string>

namespace stint::fleet {

/// The id of the run of this fleet in whose process tree this process lives; empty: none that runs now. What is
/// submitted as its child ends with it.
Task<std::string> running_parent(Fleet& fleet);

}  // namespace stint::fleet
