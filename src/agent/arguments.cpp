#include "agent/arguments.hpp"

#include "agent/text.hpp"

#include <fmt/format.h>

namespace stint::agent {
namespace {

using domain::Agent;
using domain::ArgumentSpec;
using domain::ArgumentValues;

std::unexpected<Error> refuse(const Agent& agent, const std::string& message) {
  return fail(Errc::invalid, fmt::format("{}{} Usage: {}", message,
                                         message.ends_with('.') || message.ends_with('?') ? "" : ".", usage(agent)));
}

std::string upper(std::string_view name) {
  std::string out;
  for (const char c : name) out += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

const ArgumentSpec* next_free(const Agent& agent, const ArgumentValues& values) {
  for (const bool required : {true, false}) {
    for (const ArgumentSpec& spec : agent.args) {
      if (spec.required == required && !values.contains(spec.name)) return &spec;
    }
  }
  return nullptr;
}

std::string unknown(const Agent& agent, std::string_view key) {
  std::vector<std::string> names;
  for (const ArgumentSpec& spec : agent.args) names.push_back(spec.name);
  const std::string suggestion = did_you_mean(key, names);
  return fmt::format("{} has no argument '{}'{}", agent.name, excerpt(key),
                     suggestion.empty() ? "." : "; " + suggestion);
}

}  // namespace

std::string usage(const Agent& agent) {
  std::string out = agent.name;
  for (const bool required : {true, false}) {  // the order in which positional values fill them
    for (const ArgumentSpec& spec : agent.args) {
      if (spec.required == required) out += fmt::format(fmt::runtime(required ? " {}" : " [{}]"), upper(spec.name));
    }
  }
  return out;
}

Result<ArgumentValues> bind_arguments(const Agent& agent, std::span<const std::string> words) {
  if (words.size() > kArgumentWordsMax) {
    return refuse(agent, fmt::format("{} arguments; at most {}", words.size(), kArgumentWordsMax));
  }
  ArgumentValues values;
  std::vector<const std::string*> positional;
  bool only_values = false;
  for (const std::string& word : words) {
    if (!only_values && word == "--") {
      only_values = true;
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    if (only_values || equals == std::string::npos || !domain::is_argument_name(key)) {
      positional.push_back(&word);
    } else if (contains(agent.args, key, &ArgumentSpec::name)) {
      values[key].push_back(word.substr(equals + 1));
    } else {
      const ArgumentSpec* const first = agent.args.empty() ? nullptr : &agent.args[0];
      const std::string hint =
          first == nullptr ? "" : fmt::format(" If all of it is a value, write {}={}", first->name, excerpt(word));
      return refuse(agent, unknown(agent, key) + hint);
    }
  }
  for (const std::string* const value : positional) {
    const ArgumentSpec* const spec = next_free(agent, values);
    if (spec == nullptr) return refuse(agent, fmt::format("one value too many: '{}'", excerpt(*value)));
    values[spec->name].push_back(*value);
  }
  return check_arguments(agent, std::move(values));
}

Result<ArgumentValues> check_arguments(const Agent& agent, ArgumentValues given) {
  std::size_t bytes = 0;
  for (const auto& [key, values] : given) {
    if (!contains(agent.args, key, &ArgumentSpec::name)) return refuse(agent, unknown(agent, key));
    for (const std::string& value : values) bytes += value.size();
  }
  if (bytes > kArgumentBytesMax) {
    return refuse(agent,
                  fmt::format("the arguments have {} bytes; at most {}: pass a file's name", bytes, kArgumentBytesMax));
  }
  for (const ArgumentSpec& spec : agent.args) {
    const auto found = given.find(spec.name);
    const bool has_value = found != given.end() && !found->second.empty();
    if (!has_value && spec.fallback) given[spec.name] = {*spec.fallback};
    if (!spec.required) continue;
    const std::string what = spec.description.empty() ? "" : fmt::format(" ({})", excerpt(spec.description, 80));
    if (!has_value) return refuse(agent, fmt::format("the argument '{}'{} is missing", spec.name, what));
    if (found->second.size() == 1 && found->second[0].empty()) {
      return refuse(agent, fmt::format("the argument '{}'{} is empty", spec.name, what));
    }
  }
  return given;
}

}  // namespace stint::agent
