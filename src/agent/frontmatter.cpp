#include "agent/frontmatter.hpp"

#include "agent/text.hpp"

#include <fmt/format.h>

namespace stint::agent {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string with_unix_line_ends(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    out += text[i];
  }
  return out;
}

/// A line that is `---`, possibly with trailing blanks.
bool is_marker(std::string_view line) { return line.starts_with("---") && trimmed(line.substr(3)).empty(); }

}  // namespace

bool is_text(std::string_view text, std::size_t bytes_max, ProblemList& problems) {
  if (text.size() > bytes_max) {
    problems.error({}, "", fmt::format("has {} bytes; at most {} are read", text.size(), bytes_max));
    return false;
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    problems.error({line_of(text, nul), 0}, "", "contains a NUL byte: this is not a text file", "save it as UTF-8");
    return false;
  }
  if (const std::optional<std::size_t> wrong = utf8_error(text)) {
    problems.error({line_of(text, *wrong), 0}, "", "not valid UTF-8", "save it as UTF-8");
    return false;
  }
  return true;
}

std::optional<Frontmatter> split_frontmatter(std::string_view raw, ProblemList& problems) {
  if (!is_text(raw, kAgentFileMax, problems)) return std::nullopt;
  if (raw.starts_with(kByteOrderMark)) raw.remove_prefix(kByteOrderMark.size());
  const std::string text = with_unix_line_ends(raw);
  const auto line_end = [&](std::size_t from) { return std::min(text.find('\n', from), text.size()); };

  std::size_t at = line_end(0);
  if (!is_marker(std::string_view(text).substr(0, at))) {
    problems.error({1, 1}, "", "an agent file must begin with a line '---'",
                   "put '---', its settings and '---' before the prompt");
    return std::nullopt;
  }
  const std::size_t begin = std::min(at + 1, text.size());
  int line = 2;
  for (at = begin; at < text.size(); ++line) {
    const std::size_t end = line_end(at);
    if (is_marker(std::string_view(text).substr(at, end - at))) {
      if (at - begin > kFrontmatterMax) {
        problems.error({1, 1}, "",
                       fmt::format("the frontmatter has {} bytes; at most {}", at - begin, kFrontmatterMax));
        return std::nullopt;
      }
      Frontmatter out;
      out.yaml = text.substr(begin, at - begin);
      const std::string_view rest = std::string_view(text).substr(std::min(end + 1, text.size()));
      const std::size_t first = rest.find_first_not_of(" \t\n");
      const std::size_t kept = first == std::string_view::npos ? rest.size() : rest.rfind('\n', first) + 1;
      out.body_line = line + line_of(rest, kept);
      out.body = rest.substr(kept, rest.find_last_not_of(" \t\n") + 1 - kept);
      return out;
    }
    at = end + 1;
  }
  problems.error({1, 1}, "", "the frontmatter that begins here is not closed", "put a line '---' after it");
  return std::nullopt;
}

}  // namespace stint::agent
