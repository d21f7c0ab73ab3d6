/// YAML as a small tree of text with lines and columns, built from yaml-cpp's events. Nothing is converted: whether
/// `0x10`, `no` or `1e3` is a number is the reader's decision, so that no value changes its meaning.
///
/// Bounded: depth, nodes and size. Aliases and tags are refused: agent files need none, and a few lines of aliases can
/// expand to more nodes than fit into memory. Never throws.
#pragma once

#include "agent/problem.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::agent {

struct YamlNode {
  enum class Kind : std::uint8_t { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string text;     ///< of a scalar
  bool quoted = false;  ///< written with quotes or as a block: always text
  Place place;
  std::string key;  ///< as a member of a map
  Place key_place;
  std::vector<YamlNode> items;  ///< of a list or a map

  /// The member of that key; the first if there are two.
  [[nodiscard]] const YamlNode* find(std::string_view wanted) const noexcept;
  /// "a list", "a mapping", "nothing", "'text'": for messages.
  [[nodiscard]] std::string found() const;
};

inline constexpr int kYamlDepthMax = 16;
inline constexpr std::size_t kYamlNodesMax = 10'000;

/// Parses one document. `first_line` is the line of the file where `text` begins. Nothing if it is not valid YAML, or
/// refused; then `problems` has the reason. A repeated key is an error, too, but the tree is still returned.
[[nodiscard]] std::optional<YamlNode> parse_yaml(std::string_view text, int first_line, ProblemList& problems);

}  // namespace stint::agent
