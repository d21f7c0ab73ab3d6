/// TOML as a flat list of values with lines: the only place that knows toml++.
#pragma once

#include "agent/problem.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stint::agent {

struct TomlValue {
  enum class Kind : std::uint8_t { text, integer, real, flag, list, other };
  std::vector<std::string> path;
  Place place;      ///< of the value
  Place key_place;  ///< of its key, as far as it is known
  Kind kind = Kind::other;
  std::string text;               ///< numbers as they would be written
  std::vector<std::string> list;  ///< if all its members are text
  std::string found;              ///< for messages: "a list of 2", "true", "a date"
};

/// Tables are walked into; an empty one gives nothing. If the text is no TOML, `problems` says where.
[[nodiscard]] std::vector<TomlValue> flatten_toml(std::string_view text, ProblemList& problems);

}  // namespace stint::agent
