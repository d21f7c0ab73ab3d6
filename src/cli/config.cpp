#include "cli/config.hpp"

#include "agent/settings_keys.hpp"
#include "agent/text.hpp"
#include "cli/environment.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "limit/host_place.hpp"
#include "wire/agents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace stint::cli {
namespace {

constexpr std::size_t kColumnMax = 48;

/// The setting with that key, or all settings below it.
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

void print_table(const std::vector<agent::Setting>& settings, const Environment& environment) {
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
    print_out("{}\n", (environment.terminal ? line.clipped(environment.columns, true) : line).str(environment.colour));
  }
}

/// A resize by hand overrides every file: shows the effective capacity and its origin.
void blocking_add_resized(const agent::Project& project, const Environment& environment, agent::Settings& settings) {
  const auto homes = project::blocking_find_limit_directories(project, settings, environment.variables);
  if (!homes) return;
  for (const limit::HostLimit& limit : limit::blocking_all_limits(limit::Homes(*homes), settings)) {
    const auto capacity = limit::written_capacity(limit);
    if (!capacity) continue;
    agent::Setting resized;
    resized.path = {"limits", limit.name, "capacity"};
    resized.text = std::to_string(*capacity);
    resized.origin = {agent::OriginKind::resized, "by hand; `stint limits " + limit.name + " --reset` ends that", 0};
    const auto known = std::ranges::find(settings.all, resized.path, &agent::Setting::path);
    if (known == settings.all.end()) {
      settings.all.push_back(std::move(resized));
    } else {
      resized.origin.where += "; " + describe(known->origin) + " sets " + known->text;
      *known = std::move(resized);
    }
  }
}

}  // namespace

ConfigCommand::ConfigCommand(CLI::App& app)
    : command_(app, "config", "Show every setting, its value and where it comes from") {
  command_.footer(
      "Later wins: defaults, the project's stint.toml, $XDG_CONFIG_HOME/stint/config.toml, STINT_… in the "
      "environment,\n"
      "flags, and for a limit a resize by hand. The variable of pool.workers is STINT_POOL_WORKERS. Exit status 1 if "
      "a\n"
      "value is wrong.");
  command_.option("KEY", key_, "Show only this setting, or all below it: pool, limits.gpu");
  command_.flag("--json", json_, "Print one JSON object: settings and problems");
}

bool ConfigCommand::chosen() const { return command_.chosen(); }

int ConfigCommand::run() {
  const Environment environment = blocking_read_environment();
  const auto project = agent::blocking_find_project(environment.folder);
  if (!project) return complain(project.error());
  agent::LoadedSettings loaded = agent::blocking_load_settings(project->root, environment.variables);
  blocking_add_resized(*project, environment, loaded.settings);
  const std::vector<agent::Setting> shown = chosen_settings(loaded.settings, key_);
  if (shown.empty()) {
    print_problems(loaded.problems, environment);
    return unknown_key(loaded.settings, key_);
  }
  if (json_) {
    print_out("{}\n", wire::settings_to_json(shown, loaded.problems));
  } else {
    print_table(shown, environment);
    flush_out();
    print_problems(loaded.problems, environment);
  }
  return agent::has_errors(loaded.problems) ? kExitFailed : kExitDone;
}

}  // namespace stint::cli
