/// Splits a Markdown file into its frontmatter (YAML between two lines `---`) and its body, with the line numbers of
/// both. Removes a byte-order mark and Windows line ends, and refuses files that are not text.
#pragma once

#include "agent/problem.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stint::agent {

inline constexpr std::size_t kAgentFileMax = 1024 * 1024;  ///< bytes; longer prompts are of no use to a model
inline constexpr std::size_t kFrontmatterMax = 64 * 1024;  ///< bytes; bounds the time that YAML takes

struct Frontmatter {
  std::string yaml;
  int yaml_line = 2;  ///< line of the file where `yaml` begins
  std::string body;   ///< without leading and trailing blank lines
  int body_line = 0;
};

/// Checks length, UTF-8 and NUL bytes; `problems` gets what is wrong and where.
[[nodiscard]] bool is_text(std::string_view text, std::size_t bytes_max, ProblemList& problems);

/// Nothing if the file has none or is refused; then `problems` has the reason.
[[nodiscard]] std::optional<Frontmatter> split_frontmatter(std::string_view text, ProblemList& problems);

}  // namespace stint::agent
