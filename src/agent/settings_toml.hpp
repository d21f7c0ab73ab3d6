/// TOML as a flat list of values with lines: the only place that uses toml++.
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
  Place key_place;  ///< of its key, if known
  Kind kind = Kind::other;
  std::string text;               ///< numbers in their written form
  std::vector<std::string> list;  ///< if all its members are text
  std::string found;              ///< for messages: "a list of 2", "true", "a date"
};

/// Flattens tables; an empty one gives nothing. If the text is not valid TOML, `problems` says where.
[[nodiscard]] std::vector<TomlValue> flatten_toml(std::string_view text, ProblemList& problems);

}  // namespace stint::agent
