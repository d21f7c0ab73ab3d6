/// The environment of this process, all of it at once: read at start and handed down as a value.
#pragma once

#include <map>
#include <string>

namespace stint::os {

[[nodiscard]] std::map<std::string, std::string, std::less<>> environment_variables();

}  // namespace stint::os
