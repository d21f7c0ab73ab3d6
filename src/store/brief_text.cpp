#include "store/brief_text.hpp"

namespace stint::store {
namespace {

/// The position after the quoted text that begins at `at`; the end if it is not closed.
std::size_t end_of_text(std::string_view json, std::size_t at) {
  for (++at; at < json.size(); ++at) {
    if (json[at] == '\\') {
      ++at;
    } else if (json[at] == '"') {
      return at + 1;
    }
  }
  return json.size();
}

/// The position after the value that begins at `at`: up to a comma or bracket outside of it.
std::size_t end_of_value(std::string_view json, std::size_t at) {
  std::size_t depth = 0;
  while (at < json.size()) {
    const char c = json[at];
    if (c == '"') {
      at = end_of_text(json, at);
      continue;
    }
    if (depth == 0 && (c == ',' || c == '}' || c == ']')) return at;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    ++at;
  }
  return at;
}

}  // namespace

std::string_view member_text(std::string_view json, std::string_view member) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t open = json.find_first_not_of(kSpace);
  if (open == std::string_view::npos || json[open] != '{') return {};
  std::size_t at = open + 1;
  while (true) {
    const std::size_t name = json.find_first_not_of(" \t\r\n,", at);
    if (name == std::string_view::npos || json[name] != '"') return {};
    const std::size_t name_end = end_of_text(json, name);
    const std::size_t colon = json.find_first_not_of(kSpace, name_end);
    if (colon == std::string_view::npos || json[colon] != ':') return {};
    const std::size_t value_end = end_of_value(json, colon + 1);
    if (json.substr(name + 1, name_end - name - 2) == member) return json.substr(colon + 1, value_end - colon - 1);
    at = value_end;
  }
}

std::string brief_text(std::string text, std::string_view member, std::size_t bytes_max) {
  if (bytes_max == 0 || text.size() <= bytes_max) return text;
  const std::string_view value = member_text(text, member);
  if (value.empty()) return "{}";
  return std::string("{\"").append(member).append("\":").append(value).append("}");
}

}  // namespace stint::store
