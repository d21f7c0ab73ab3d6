#include "cli/config.hpp"

#include "agent/settings_keys.hpp"
#include "agent/text.hpp"
#include "cli/printable.hpp"
#include "cli/surroundings.hpp"
#include "wire/agents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace stint::cli {
namespace {

constexpr std::size_t kColumnMax = 48;

/// The setting of that key, or all below it.
std::vector<agent::Setting> chosen_settings(const agent::Settings& settings, const std::string& key) {
  if (key.empty()) return settings.all;
  if (const agent::Setting* const exact = settings.find(key)) return {*exact};
  std::vector<agent::Setting> out;
  for (const agent::Setting& setting : settings.all) {
    const std::string quoted = setting.key();
    std::string bare;
    for (const std::string& segment : setting.path) bare += (bare.empty() ? "" : ".") + segment;
    if (quoted.starts_with(key + ".") || bare.starts_with(key + ".")) out.push_back(setting);
  }
  return out;
}

int unknown_key(const agent::Settings& settings, const std::string& key) {
  std::vector<std::string> names;
  for (const agent::SettingKey& known : agent::setting_keys()) names.emplace_back(known.pattern);
  for (const agent::Setting& setting : settings.all) names.push_back(setting.key());
  if (agent::contains(names, key))
    return complain({Errc::invalid, fmt::format("'{}' is not set, and has no default", key)});
  const std::string suggestion = agent::did_you_mean(key, names);
  return complain({Errc::invalid, fmt::format("there is no setting '{}'{}", key,
                                              suggestion.empty() ? "; `stint config` lists them" : "; " + suggestion)});
}

void print_table(const std::vector<agent::Setting>& settings, const Surroundings& around) {
  std::size_t key_width = 0;
  std::size_t value_width = 0;
  for (const agent::Setting& setting : settings) {
    key_width = std::max(key_width, std::min(setting.key().size(), kColumnMax));
    value_width = std::max(value_width, std::min(setting.shown().size(), kColumnMax));
  }
  for (const agent::Setting& setting : settings) {
    Line line;
    line.add(fmt::format("{:{}} = ", printable(setting.key()), key_width));
    line.add(fmt::format("{:{}}", printable(setting.shown()), value_width), Style::bold);
    line.add("  " + printable(describe(setting.origin)), Style::dim);
    fmt::print("{}\n", (around.terminal ? line.clipped(around.columns, true) : line).str(around.colour));
  }
}

}  // namespace

ConfigCommand::ConfigCommand(CLI::App& app)
    : command_(app, "config", "Every setting, its value and where it comes from") {
  command_.footer(
      "Later wins: defaults, stint.toml of the project, $XDG_CONFIG_HOME/stint/config.toml, STINT_… in the "
      "environment,\n"
      "flags. The variable of pool.workers is STINT_POOL_WORKERS. Exit status 1 if a value is wrong.");
  command_.option("KEY", key_, "Only this one, or all below it: pool, limits.gpu");
  command_.flag("--json", json_, "One JSON object: settings and problems");
}

bool ConfigCommand::chosen() const { return command_.chosen(); }

int ConfigCommand::run() {
  const Surroundings around = blocking_look_around();
  const auto project = agent::blocking_find_project(around.folder);
  if (!project) return complain(project.error());
  const agent::LoadedSettings loaded = agent::blocking_load_settings(project->root, around.environment);
  const std::vector<agent::Setting> shown = chosen_settings(loaded.settings, key_);
  if (shown.empty()) {
    print_problems(loaded.problems, around);
    return unknown_key(loaded.settings, key_);
  }
  if (json_) {
    fmt::print("{}\n", wire::settings_to_json(shown, loaded.problems));
  } else {
    print_table(shown, around);
    std::fflush(stdout);
    print_problems(loaded.problems, around);
  }
  return agent::has_errors(loaded.problems) ? kExitFailed : kExitDone;
}

}  // namespace stint::cli
