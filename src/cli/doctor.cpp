#include "cli/doctor.hpp"

#include "agent/check.hpp"
#include "cli/doctor_core.hpp"
#include "cli/environment.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "domain/driver_descriptor.hpp"
#include "fleet/store_location.hpp"
#include "limit/host_place.hpp"
#include "os/blocking_run.hpp"
#include "os/cgroup.hpp"
#include "os/owner.hpp"
#include "os/process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <unistd.h>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;

constexpr Duration kAnswerWait = 10s;  // a CLI on a cold disk takes 2 to 3 s

std::string variable(const agent::EnvironmentVariables& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

ProgramFacts program(const std::string& name, const agent::EnvironmentVariables& environment) {
  ProgramFacts facts;
  facts.name = name;
  facts.path = os::find_program(name, variable(environment, "PATH"));
  return facts;
}

/// Starts all programs at once. Versions are queried in the root directory, so that no file of the checkout matters.
void blocking_ask_programs(DoctorFacts& facts) {
  std::vector<os::Question> questions;
  std::vector<os::Answer*> answers;
  const auto add = [&](std::vector<std::string> argv, std::string directory, os::Answer& answer) {
    questions.push_back({std::move(argv), std::move(directory)});
    answers.push_back(&answer);
  };
  if (!facts.git.path.empty()) {
    add({facts.git.path, "--version"}, "/", facts.git.version);
    if (facts.in_repository) add({facts.git.path, "rev-parse", "--show-toplevel"}, facts.folder, facts.repository);
  }
  for (ProgramFacts& cli : facts.clis) {
    if (!cli.path.empty()) add({cli.path, "--version"}, "/", cli.version);
  }
  os::become_subreaper();  // a CLI's child may have left its process group
  std::vector<os::Answer> said = os::blocking_ask(questions, kAnswerWait);
  for (std::size_t i = 0; i < said.size(); ++i) *answers[i] = std::move(said[i]);
  os::blocking_end_leftovers();
}

void gather_programs(DoctorFacts& facts, const agent::Catalogue& catalogue, const agent::Settings& settings,
                     const agent::EnvironmentVariables& environment) {
  facts.git = program("git", environment);
  for (const domain::DriverDescriptor& driver : domain::kDrivers) {
    if (driver.install_hint.empty()) continue;
    ProgramFacts cli = program(std::string(driver.name), environment);
    cli.is_default = settings.driver == &driver;
    for (const domain::Agent& agent : catalogue.agents) {
      if ((agent.driver != nullptr ? agent.driver : settings.driver) == &driver) cli.agents.push_back(agent.name);
    }
    facts.clis.push_back(std::move(cli));
  }
}

std::vector<KeyFacts> gather_keys(const agent::Settings& settings, const agent::EnvironmentVariables& environment) {
  std::vector<KeyFacts> keys;
  const auto add = [&](const std::string& name, bool present, const std::string& account, bool is_file = false) {
    const auto known = std::ranges::find(keys, name, &KeyFacts::name);
    if (known == keys.end()) {
      keys.push_back({name, present, account, is_file});
    } else if (known->account.empty()) {
      known->account = account;
    }
  };
  for (const domain::DriverDescriptor& driver : domain::kDrivers) {
    const std::string name(driver.key_variable);
    if (!name.empty()) add(name, !variable(environment, name).empty(), "");
  }
  for (const auto& [name, account] : settings.accounts) {
    if (!account.key_env.empty()) add(account.key_env, !variable(environment, account.key_env).empty(), name);
    if (!account.key_file.empty()) add(account.key_file, ::access(account.key_file.c_str(), R_OK) == 0, name, true);
  }
  return keys;
}

TrustFacts blocking_gather_trust(const agent::Project& project, const agent::Catalogue& catalogue,
                                 const agent::Settings& settings, const agent::EnvironmentVariables& environment) {
  TrustFacts trust;
  trust.things = agent::things_that_need_trust(catalogue, settings);
  const auto places = agent::user_places(environment);
  if (!places) {
    trust.problem = places.error().describe();
    return trust;
  }
  const auto trusted = agent::blocking_is_trusted(places->state, project);
  if (trusted) {
    trust.trusted = *trusted;
  } else {
    trust.problem = trusted.error().describe();
  }
  return trust;
}

void blocking_gather_homes(DoctorFacts& facts, const agent::Project& project, const agent::Settings& settings,
                           const agent::EnvironmentVariables& environment) {
  const auto homes = project::blocking_find_limit_directories(project, settings, environment);
  if (!homes) {
    facts.homes_problem = homes.error().describe();
    return;
  }
  facts.homes.push_back({"limits", homes->limits, os::blocking_probe_directory(homes->limits)});
  if (!homes->agents.empty()) {
    facts.homes.push_back({"agents", homes->agents, os::blocking_probe_directory(homes->agents)});
  }
  for (const limit::HostLimit& limit : limit::blocking_all_limits(limit::Homes(*homes), settings))
    facts.limits.push_back(limit::list(limit));
}

/// Why the first run could not create the store; empty: it could.
std::string blocking_why_not_made(const std::string& path) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  while (!std::filesystem::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {};
  const std::string why = std::generic_category().message(errno);
  const std::string owner = os::foreign_owner(folder.string());
  return fmt::format("{} can't be created in {}: {}{}", path, folder.string(), why,
                     owner.empty() ? std::string() : "; it belongs to " + owner);
}

/// Opens an existing store, as every command does.
StoreFacts blocking_gather_store(const Environment& environment, const std::string& store,
                                 const domain::System& system) {
  StoreFacts facts;
  if (store == "memory") {
    facts.shown = "memory";
    return facts;
  }
  const auto place = fleet::blocking_find_store(environment);
  if (!place) {
    facts.problem = place.error().describe();
    return facts;
  }
  facts.shown = place->shown;
  facts.exists = place->exists();
  if (!facts.exists) {
    facts.problem = blocking_why_not_made(place->path);
    return facts;
  }
  Reactor reactor;
  const auto look = [&]() -> Task<Result<std::uint64_t>> {
    STINT_CO_TRY(const auto opened, co_await fleet::open_store(reactor, *place, system));
    STINT_CO_TRY(const store::Stats stats, co_await opened->stats());
    std::uint64_t runs = 0;
    for (const auto& [state, count] : stats.runs) runs += count;
    co_return runs;
  };
  const auto body = [&]() -> Task<Result<std::uint64_t>> {
    co_return co_await with_deadline(Deadline::after(reactor.now(), kAnswerWait), look());
  };
  const auto runs = os::blocking_run(reactor, body());
  if (runs) {
    facts.runs = *runs;
  } else {
    facts.problem = fmt::format("{} can't be used: {}", place->shown, runs.error().describe());
  }
  return facts;
}

DoctorFacts blocking_gather(const Environment& environment, const domain::System& system) {
  DoctorFacts facts;
  facts.folder = environment.folder.string();
  agent::Project project;
  project.root = environment.folder;
  if (auto found = agent::blocking_find_project(environment.folder)) {
    project = std::move(*found);
  } else {
    facts.project_problem = found.error().describe();
  }
  facts.in_repository = project.is_repository();
  agent::LoadedSettings loaded = agent::blocking_load_settings(project.root, environment.variables);
  const agent::Catalogue catalogue = agent::blocking_discover(project.root);
  facts.settings_problems = std::move(loaded.problems);
  facts.agents_problems = catalogue.problems;
  for (agent::Problem& problem : agent::check_whole(catalogue, loaded.settings)) {
    facts.agents_problems.push_back(std::move(problem));
  }
  facts.agents = catalogue.agents.size();
  gather_programs(facts, catalogue, loaded.settings, environment.variables);
  blocking_ask_programs(facts);
  facts.keys = gather_keys(loaded.settings, environment.variables);
  facts.cgroup.own = os::own_cgroup();
  facts.cgroup.delegated = os::delegated_cgroup();
  facts.cgroup.probe = os::blocking_probe_cgroup(facts.cgroup.delegated);
  blocking_gather_homes(facts, project, loaded.settings, environment.variables);
  facts.inotify_instances_max = os::inotify_instances_max();
  facts.resources = os::resource_limits();
  facts.trust = blocking_gather_trust(project, catalogue, loaded.settings, environment.variables);
  facts.store = blocking_gather_store(environment, loaded.settings.store, system);
  return facts;
}

Style style_of(wire::CheckStatus status) {
  return status == wire::CheckStatus::ok     ? Style::green
         : status == wire::CheckStatus::warn ? Style::yellow
                                             : Style::red;
}

void print(const std::vector<wire::Check>& checks, bool colour) {
  std::size_t width = 0;
  for (const wire::Check& check : checks) width = std::max(width, check.id.size());
  std::array<std::size_t, 3> count{};
  for (const wire::Check& check : checks) {
    ++count[static_cast<std::size_t>(check.status)];
    Line line;
    line.add(fmt::format("{:4}", to_string(check.status)), style_of(check.status));
    line.add(fmt::format("  {:{}}  {}", printable(check.id), width, printable(check.summary)));
    print_out("{}\n", line.str(colour));
    if (!check.remedy.empty()) print_out("{:{}}  → {}\n", "", width + 6, printable(check.remedy));
  }
  print_out("{} ok, {} warnings, {} failed\n", count[0], count[1], count[2]);
}

}  // namespace

DoctorCommand::DoctorCommand(CLI::App& app)
    : command_(app, "doctor", "Check this host and project, with a remedy for each finding") {
  command_.footer("Changes nothing and never prints a key. Exit status 1 if a check failed; warnings do not count.");
  command_.flag("--json", json_, "Print one JSON object: status, and checks with id, status, summary and remedy");
}

bool DoctorCommand::chosen() const { return command_.chosen(); }

int DoctorCommand::run(const domain::System& system) {
  const Environment environment = blocking_read_environment();
  if (const auto project = agent::blocking_find_project(environment.folder); !project && environment.folder == ".") {
    return complain(project.error());
  }
  const std::vector<wire::Check> checks = judge(blocking_gather(environment, system));
  if (json_) {
    print_out("{}\n", wire::doctor_to_json(checks));
  } else {
    print(checks, environment.colour);
  }
  return worst(checks) == wire::CheckStatus::fail ? kExitFailed : kExitDone;
}

}  // namespace stint::cli
