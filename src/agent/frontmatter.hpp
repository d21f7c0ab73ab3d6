/// Splits a Markdown file into its frontmatter (YAML between two lines `---`) and its body, and knows the lines of
/// both. Files come from anywhere: a byte-order mark and Windows line ends are taken off, what is no text is refused.
#pragma once

#include "agent/problem.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stint::agent {

inline constexpr std::size_t kAgentFileMax = 1024 * 1024;  ///< bytes; no model reads a longer prompt with profit
inline constexpr std::size_t kFrontmatterMax = 64 * 1024;  ///< bytes; bounds the time that YAML takes

struct Frontmatter {
  std::string yaml;
  int yaml_line = 2;  ///< of the file, where `yaml` begins
  std::string body;   ///< without blank lines at its ends
  int body_line = 0;
};

/// No longer than that, valid UTF-8, no NUL byte; else `problems` says what and where.
[[nodiscard]] bool is_text(std::string_view text, std::size_t bytes_max, ProblemList& problems);

/// Nothing if the file has none or is refused; then `problems` says why.
[[nodiscard]] std::optional<Frontmatter> split_frontmatter(std::string_view text, ProblemList& problems);

}  // namespace stint::agent
