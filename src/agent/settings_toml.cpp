#include "agent/settings_toml.hpp"

#include "agent/frontmatter.hpp"
#include "agent/settings.hpp"
#include "agent/text.hpp"
#include "agent/toml.hpp"

#include <fmt/format.h>

namespace stint::agent {
namespace {

constexpr std::size_t kDepthMax = 8;
constexpr std::size_t kValuesMax = 2000;

Place place_of(const toml::source_region& source) {
  return {static_cast<int>(source.begin.line), static_cast<int>(source.begin.column)};
}

void read_list(const toml::array& array, TomlValue& out) {
  out.kind = TomlValue::Kind::list;
  out.found = fmt::format("a list of {}", array.size());
  for (const toml::node& item : array) {
    const toml::value<std::string>* const text = item.as_string();
    if (text == nullptr) {
      out.kind = TomlValue::Kind::other;
      out.list.clear();
      out.found = "a list with values that are not text";
      return;
    }
    out.list.push_back(text->get());
  }
}

void read_value(const toml::node& node, TomlValue& out) {
  using Kind = TomlValue::Kind;
  if (const auto* const text = node.as_string()) {
    out.kind = Kind::text;
    out.text = text->get();
    out.found = fmt::format("the text \"{}\"", excerpt(out.text));
  } else if (const auto* const integer = node.as_integer()) {
    out.kind = Kind::integer;
    out.text = out.found = fmt::format("{}", integer->get());
  } else if (const auto* const real = node.as_floating_point()) {
    out.kind = Kind::real;
    out.text = out.found = fmt::format("{}", real->get());
  } else if (const auto* const flag = node.as_boolean()) {
    out.kind = Kind::flag;
    out.text = out.found = flag->get() ? "true" : "false";
  } else if (const toml::array* const array = node.as_array()) {
    read_list(*array, out);
  } else {
    out.found = "a date or time";
  }
}

void walk(const toml::table& table, std::vector<std::string>& path, std::vector<TomlValue>& out,
          ProblemList& problems) {
  for (const auto& [key, node] : table) {
    path.emplace_back(key.str());
    const Place place = place_of(node.source());
    if (out.size() >= kValuesMax || path.size() > kDepthMax) {
      problems.error(place, "", fmt::format("more than {} values or {} levels", kValuesMax, kDepthMax));
    } else if (const toml::table* const inner = node.as_table()) {
      walk(*inner, path, out, problems);
    } else {
      TomlValue value;
      value.path = path;
      value.place = place;
      value.key_place = place_of(key.source());
      read_value(node, value);
      out.push_back(std::move(value));
    }
    path.pop_back();
  }
}

/// The first line that begins like a table's header and has no name. The asserts don't report a position.
int line_of_bad_header(std::string_view text) {
  int line = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view rest = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line;
    if (!rest.starts_with('[')) continue;
    rest = trimmed(rest.substr(rest.starts_with("[[") ? 2 : 1));
    const bool named =
        !rest.empty() && (domain::is_limit_name(rest.substr(0, 1)) || std::string_view("_-\"'").contains(rest[0]));
    if (!named) return line;
  }
  return 0;
}

}  // namespace

std::vector<TomlValue> flatten_toml(std::string_view text, ProblemList& problems) {
  std::vector<TomlValue> out;
  if (!is_text(text, kSettingsFileMax, problems)) return out;
  try {
    const toml::table parsed = toml::parse(text);
    std::vector<std::string> path;
    walk(parsed, path, out, problems);
  } catch (const toml::parse_error& error) {
    problems.error(place_of(error.source()), "", fmt::format("not valid TOML: {}", excerpt(error.description(), 200)));
  } catch (const TomlAssert&) {
    problems.error({line_of_bad_header(text), 0}, "", "not valid TOML", "write a table's name between [ and ]");
  }
  return out;
}

}  // namespace stint::agent
