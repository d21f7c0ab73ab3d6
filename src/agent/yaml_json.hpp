/// A tree of YAML as JSON text, for schemas that agent files hold. A plain scalar that JSON knows as a number, `true`,
/// `false` or `null` is one; every other scalar, and each in quotes, is a string.
#pragma once

#include "agent/yaml.hpp"

#include <string>

namespace stint::agent {

[[nodiscard]] std::string json_text(const YamlNode& node);

}  // namespace stint::agent
