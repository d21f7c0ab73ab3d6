#include "cli/run_submission.hpp"

#include "agent/quantity.hpp"
#include "agent/trust.hpp"
#include "cli/option_value.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "domain/trace.hpp"
#include "os/process.hpp"
#include "os/terminal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <unistd.h>

namespace stint::cli {
namespace {

Result<> check_agent(const agent::Catalogue& catalogue, const std::string& name) {
  if (catalogue.find(name) != nullptr) return {};
  const bool broken = std::ranges::find(catalogue.broken, name) != catalogue.broken.end();
  for (const agent::Problem& problem : catalogue.problems) {
    if (broken && problem.severity == agent::Severity::error && problem.file.find(name) != std::string::npos) {
      return fail(Errc::invalid, describe(problem));
    }
  }
  const std::string hint = catalogue.did_you_mean(name);
  return fail(Errc::invalid, "there is no agent '" + name + "'" + (hint.empty() ? "." : "; " + hint) +
                                 " `stint agents` lists them, `stint run -p TEXT` needs none");
}

}  // namespace

Result<engine::Submission> submission_of(const RunOptions& options, const project::Snapshot& snapshot) {
  engine::Submission submission;
  if (!options.prompt.empty()) {
    if (!options.words.empty()) {
      return fail(Errc::invalid, "-p takes no agent: leave out '" + options.words.front() + "'");
    }
    submission.prompt = options.prompt;
  } else {
    if (options.words.empty())
      return fail(Errc::invalid, "no agent given. Use `stint run AGENT [value…]` or `stint run -p TEXT`");
    submission.agent = options.words.front();
    STINT_CHECK(check_agent(snapshot.catalogue, submission.agent));
    submission.words.assign(options.words.begin() + 1, options.words.end());
  }
  submission.driver = options.driver;
  submission.model = options.model;
  submission.program = options.program;
  if (submission.program.contains('/'))
    submission.program = std::filesystem::absolute(submission.program).lexically_normal().string();
  submission.session = options.session;
  submission.trace = domain::trace_of(os::environment("TRACEPARENT")).value_or("");
  STINT_TRY(submission.budget, options.budget.read());
  if (!options.deadline.empty()) {
    STINT_TRY(submission.deadline, ahead("--deadline", agent::parse_duration(options.deadline)));
  }
  return submission;
}

namespace {

/// Everything that trust would allow, one per line: a person must see all of it before agreeing.
std::string blocking_trust_question(const agent::Project& project, const agent::Catalogue& catalogue,
                                    const agent::Settings& settings) {
  std::string text = printable(project.root.string()) + " is not trusted. It asks for:\n";
  const auto add = [&text](const agent::TrustedThing& thing) {
    text += fmt::format("  {}  ({})\n", printable(thing.what), printable(thing.where));
  };
  for (const auto& thing : agent::things_that_need_trust(catalogue, settings)) add(thing);
  for (const auto& thing : agent::blocking_find_cli_settings(project.root)) add(thing);
  for (const auto& thing : agent::blocking_find_git_things(project)) add(thing);
  return text + "Trust this checkout, with its present files and later changes? [y/N] ";
}

/// False: no terminal, or the answer was no.
Result<bool> blocking_ask(const std::string& question, const agent::Project& project, const Environment& environment) {
  // An agent must not answer for a person.
  if (environment.variables.contains("STINT_RUN")) return false;
  if (!os::terminal_size(STDIN_FILENO) || !os::terminal_size(STDERR_FILENO)) return false;
  STINT_TRY(const agent::UserPlaces places, agent::user_places(environment.variables));
  print_error("{}", question);
  std::string answer;
  std::getline(std::cin, answer);
  if (answer != "y" && answer != "yes") return false;
  STINT_CHECK(agent::blocking_trust(places.state, project));
  return true;
}

}  // namespace

Result<bool> blocking_ask_trust(const engine::Submission& submission, const project::Snapshot& snapshot,
                                const Environment& environment) {
  const auto found =
      snapshot.registry.find(submission.agent.empty() ? domain::kPromptAgent : std::string_view(submission.agent));
  if (found == snapshot.registry.end() || snapshot.trusted) return false;
  const domain::Agent& agent = found->second.agent;
  auto things = agent::things_that_need_trust(agent, project::driver_of(agent, submission.driver));
  for (auto& thing : agent::blocking_find_git_things(snapshot.checkout.project)) things.push_back(std::move(thing));
  if (things.empty()) return false;
  const agent::Project& project = snapshot.checkout.project;
  const std::string question = blocking_trust_question(project, snapshot.catalogue, snapshot.checkout.settings);
  STINT_TRY(const bool yes, blocking_ask(question, project, environment));
  if (!yes) return fail(agent::untrusted(project, things.front()));
  return true;
}

Result<project::Checkout> blocking_find_settings_or_ask(const Environment& environment) {
  auto settings = project::blocking_read_checkout(environment);
  if (settings || settings.error() != Errc::denied) return settings;
  STINT_TRY(const agent::Project project, agent::blocking_find_project(environment.folder));
  const agent::LoadedSettings loaded = agent::blocking_load_settings(project.root, environment.variables);
  const std::string question =
      fmt::format("{}.\n{}", printable(settings.error().what()),
                  blocking_trust_question(project, agent::blocking_discover(project.root), loaded.settings));
  STINT_TRY(const bool yes, blocking_ask(question, project, environment));
  return yes ? project::blocking_read_checkout(environment) : settings;
}

}  // namespace stint::cli
