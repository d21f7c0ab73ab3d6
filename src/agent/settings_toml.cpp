#include "agent/settings_toml.hpp"

#include "agent/text.hpp"

#include <fmt/format.h>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace stint::agent {
namespace {

constexpr std::size_t kDepthMax = 8;
constexpr std::size_t kValuesMax = 10'000;

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
      out.found = "a list of more than text";
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

}  // namespace

std::vector<TomlValue> flatten_toml(std::string_view text, ProblemList& problems) {
  std::vector<TomlValue> out;
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    problems.error(place_of(parsed.error().source()), "",
                   fmt::format("not valid TOML: {}", excerpt(parsed.error().description(), 200)));
    return out;
  }
  std::vector<std::string> path;
  walk(parsed.table(), path, out, problems);
  return out;
}

}  // namespace stint::agent
