/// The whole environment of this process: read at the start and passed on as a value.
#pragma once

#include <map>
#include <string>

namespace stint::os {

[[nodiscard]] std::map<std::string, std::string, std::less<>> environment_variables();

}  // namespace stint::os
