#include "os/variables.hpp"

#include <string_view>
#include <unistd.h>

namespace stint::os {

std::map<std::string, std::string, std::less<>> environment_variables() {
  std::map<std::string, std::string, std::less<>> out;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view line(*variable);
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos) out.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return out;
}

}  // namespace stint::os
