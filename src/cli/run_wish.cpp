#include "cli/run_wish.hpp"

#include "agent/quantity.hpp"
#include "agent/trust.hpp"
#include "cli/option_value.hpp"
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

Result<engine::Submission> wish_of(const RunOptions& options, const Reading& reading) {
  engine::Submission wish;
  if (!options.prompt.empty()) {
    if (!options.words.empty()) {
      return fail(Errc::invalid, "-p needs no agent: leave out '" + options.words.front() + "'");
    }
    wish.prompt = options.prompt;
  } else {
    if (options.words.empty())
      return fail(Errc::invalid, "which agent? stint run AGENT [value…], or stint run -p TEXT");
    wish.agent = options.words.front();
    STINT_CHECK(check_agent(reading.catalogue, wish.agent));
    wish.words.assign(options.words.begin() + 1, options.words.end());
  }
  wish.driver = options.driver;
  wish.model = options.model;
  wish.program = options.program;
  wish.session = options.session;
  wish.trace = domain::trace_of(os::environment("TRACEPARENT")).value_or("");
  if (!options.time.empty()) {
    STINT_TRY(wish.budget.time, of_option("--time", agent::parse_duration(options.time)));
  }
  if (!options.tokens.empty()) {
    STINT_TRY(wish.budget.tokens, of_option("--tokens", agent::parse_count(options.tokens)));
  }
  if (!options.cost.empty()) {
    STINT_TRY(wish.budget.money_micros, of_option("--cost", agent::parse_money(options.cost)));
  }
  wish.budget.attempts = options.attempts;
  if (!options.deadline.empty()) {
    STINT_TRY(wish.deadline, ahead("--deadline", agent::parse_duration(options.deadline)));
  }
  return wish;
}

Result<bool> blocking_ask_trust(const std::string& name, const Reading& reading, const Surroundings& around) {
  const domain::Agent* const agent = reading.catalogue.find(name);
  if (agent == nullptr) return false;
  const auto things = agent::things_that_need_trust(*agent);
  if (things.empty()) return false;
  STINT_TRY(const agent::UserPlaces places, agent::user_places(around.environment));
  STINT_TRY(const bool trusted, agent::blocking_is_trusted(places.state, reading.place.project));
  if (trusted) return false;
  const bool may_ask = os::terminal_size(STDIN_FILENO) && os::terminal_size(STDERR_FILENO);
  if (!may_ask) return fail(agent::untrusted(reading.place.project, things.front()));
  fmt::print(stderr, "{} wants to run {} ({}).\nTrust this checkout with what its files say, now and later? [y/N] ",
             reading.place.project.root.string(), things.front().what, things.front().where);
  std::string answer;
  std::getline(std::cin, answer);
  if (answer != "y" && answer != "yes") return fail(agent::untrusted(reading.place.project, things.front()));
  STINT_CHECK(agent::blocking_trust(places.state, reading.place.project));
  return true;
}

}  // namespace stint::cli
