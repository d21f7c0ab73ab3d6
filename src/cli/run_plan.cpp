#include "cli/run_plan.hpp"

#include "agent/agent_file.hpp"
#include "agent/arguments.hpp"
#include "agent/discovery.hpp"
#include "agent/quantity.hpp"
#include "agent/template.hpp"
#include "agent/trust.hpp"
#include "domain/run_id.hpp"
#include "os/process.hpp"
#include "os/terminal.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <unistd.h>

namespace stint::cli {
namespace {

constexpr std::string_view kPromptAgent = "prompt";  // of `run -p`

Result<domain::Agent> find_agent(const agent::Catalogue& catalogue, const std::string& name) {
  if (const domain::Agent* const found = catalogue.find(name)) return *found;
  for (const agent::Problem& problem : catalogue.problems) {
    const bool broken = std::ranges::find(catalogue.broken, name) != catalogue.broken.end();
    if (broken && problem.severity == agent::Severity::error && problem.file.find(name) != std::string::npos) {
      return fail(Errc::invalid, describe(problem));
    }
  }
  const std::string hint = catalogue.did_you_mean(name);
  return fail(Errc::invalid, "there is no agent '" + name + "'" + (hint.empty() ? "." : "; " + hint) +
                                 " `stint agents` lists them, `stint run -p TEXT` needs none");
}

/// What a checkout would run needs a person's word, once: asked on a terminal, refused without one.
Result<> check_trust(const domain::Agent& agent, const HostPlace& place, const Surroundings& around) {
  const auto things = agent::things_that_need_trust(agent);
  if (things.empty()) return {};
  STINT_TRY(const agent::UserPlaces places, agent::user_places(around.environment));
  STINT_TRY(const bool trusted, agent::blocking_is_trusted(places.state, place.project));
  if (trusted) return {};
  const bool may_ask = os::terminal_size(STDIN_FILENO) && os::terminal_size(STDERR_FILENO);
  if (!may_ask) return fail(agent::untrusted(place.project, things.front()));
  fmt::print(stderr, "{} wants to run {} ({}).\nTrust this checkout with what its files say, now and later? [y/N] ",
             place.project.root.string(), things.front().what, things.front().where);
  std::string answer;
  std::getline(std::cin, answer);
  if (answer != "y" && answer != "yes") return fail(agent::untrusted(place.project, things.front()));
  return agent::blocking_trust(places.state, place.project);
}

Result<> add_limit(const std::string& name, std::uint32_t weight, std::uint32_t capacity, const HostPlace& place,
                   engine::RunPlan& plan) {
  STINT_TRY(limit::HostLimit limit, place.homes.find(name, capacity));
  if (weight > limit::capacity_now(limit)) {
    return fail(Errc::invalid,
                fmt::format("{}: weight {} is more than its capacity, {}", name, weight, limit::capacity_now(limit)));
  }
  plan.limits.push_back({std::move(limit), weight});
  return {};
}

Result<> plan_limits(const domain::Agent& agent, const HostPlace& place, engine::RunPlan& plan) {
  if (agent.max_concurrency) {
    STINT_CHECK(add_limit(domain::agent_limit(agent.name), 1, *agent.max_concurrency, place, plan));
  }
  for (const domain::LimitRequest& request : agent.limits) {
    const auto capacity = configured_capacity(place.settings, request.name);
    if (!capacity) {
      return fail(Errc::invalid,
                  fmt::format("{}:{}: the limit '{}' is defined nowhere; give it a number in [limits] of "
                              "stint.toml",
                              agent.file, request.line, request.name));
    }
    STINT_CHECK(add_limit(request.name, request.weight, *capacity, place, plan));
  }
  if (const auto capacity = configured_capacity(place.settings, "host")) {
    STINT_CHECK(add_limit("host", 1, *capacity, place, plan));
  }
  return {};
}

/// The agent's, else the settings'; flags win.
Result<> plan_budget(const RunOptions& options, const domain::Agent& agent, const HostPlace& place, TimePoint now,
                     engine::RunPlan& plan) {
  const domain::BudgetSpec& fallback = place.settings.budget;
  plan.budget = agent.budget;
  if (!plan.budget.time) plan.budget.time = fallback.time;
  if (!plan.budget.attempts) plan.budget.attempts = fallback.attempts;
  if (!plan.budget.tokens) plan.budget.tokens = fallback.tokens;
  if (!plan.budget.money_micros) plan.budget.money_micros = fallback.money_micros;
  if (!options.time.empty()) {
    STINT_TRY(plan.budget.time, agent::parse_duration(options.time));
  }
  if (!options.tokens.empty()) {
    STINT_TRY(plan.budget.tokens, agent::parse_count(options.tokens));
  }
  if (!options.cost.empty()) {
    STINT_TRY(plan.budget.money_micros, agent::parse_money(options.cost));
  }
  if (options.attempts) plan.budget.attempts = options.attempts;
  if (!options.deadline.empty()) {
    STINT_TRY(const Duration left, agent::parse_duration(options.deadline));
    plan.deadline = Deadline::after(now, left);
  }
  return {};
}

void plan_attempt(const RunOptions& options, const domain::Agent& agent, const agent::Catalogue& catalogue,
                  agent::RenderedAgent rendered, engine::RunPlan& plan) {
  driver::Attempt& attempt = plan.attempt;
  attempt.prompt = std::move(rendered.prompt);
  attempt.command = std::move(rendered.command);
  attempt.model = options.model.empty() ? agent.model : options.model;
  attempt.program = options.program;
  attempt.driver_args = agent.driver_args;
  attempt.permissions = agent.permissions.value_or(domain::Permissions::edit);
  attempt.system_prompt = catalogue.system_prompt;
  if (!agent.system_prompt.empty()) {
    if (!attempt.system_prompt.empty()) attempt.system_prompt += "\n\n";
    attempt.system_prompt += agent.system_prompt;
  }
  if (agent.turns_max) attempt.turns_max = static_cast<int>(*agent.turns_max);
}

/// Which of a CLI's own tools it may use. A restriction that a driver can't carry out is refused, not forgotten.
Result<> plan_tools(const domain::Agent& agent, engine::RunPlan& plan) {
  if (!agent.tool_names && agent.tool_names_denied.empty()) return {};
  if (plan.driver != "claude") {
    return fail(Errc::invalid,
                agent.file + ": the driver '" + plan.driver + "' can't restrict tools as this file says");
  }
  std::vector<std::string>& arguments = plan.attempt.driver_args;
  if (agent.tool_names) {
    arguments.emplace_back("--tools");
    arguments.push_back(fmt::format("{}", fmt::join(*agent.tool_names, ",")));
  }
  if (!agent.tool_names_denied.empty()) {
    arguments.emplace_back("--disallowedTools");
    arguments.push_back(fmt::format("{}", fmt::join(agent.tool_names_denied, ",")));
  }
  return {};
}

Result<std::pair<domain::Agent, domain::ArgumentValues>> chosen_agent(const RunOptions& options,
                                                                      const agent::Catalogue& catalogue) {
  if (!options.prompt.empty()) {
    if (!options.words.empty())
      return fail(Errc::invalid, "-p needs no agent: leave out '" + options.words.front() + "'");
    domain::Agent agent;
    agent.name = kPromptAgent;
    agent.prompt.text = agent::Template::escape(options.prompt);
    return std::pair(std::move(agent), domain::ArgumentValues());
  }
  if (options.words.empty()) return fail(Errc::invalid, "which agent? stint run AGENT [value…], or stint run -p TEXT");
  STINT_TRY(domain::Agent agent, find_agent(catalogue, options.words.front()));
  const std::vector<std::string> rest(options.words.begin() + 1, options.words.end());
  STINT_TRY(domain::ArgumentValues values, agent::bind_arguments(agent, rest));
  return std::pair(std::move(agent), std::move(values));
}

}  // namespace

Result<engine::RunPlan> blocking_plan_run(const RunOptions& options, const HostPlace& place, const Surroundings& around,
                                          const domain::Ambient& ambient, TimePoint now) {
  const agent::Catalogue catalogue = agent::blocking_discover(place.project.root);
  STINT_TRY(auto chosen, chosen_agent(options, catalogue));
  const auto& [agent, values] = chosen;
  STINT_TRY(agent::RenderedAgent rendered, agent::render(agent, values));
  engine::RunPlan plan;
  plan.id = domain::new_run_id(ambient);
  plan.label = rendered.title.empty() ? agent.name : rendered.title;
  plan.driver =
      options.driver.empty() ? std::string(to_string(agent.driver.value_or(place.settings.driver))) : options.driver;
  if (plan.driver == "llm")
    return fail(Errc::invalid, "the driver 'llm' is not built yet; use claude, codex, gemini or command");
  if (plan.driver == "command" && rendered.command.empty()) {
    return fail(Errc::invalid, agent.name + ": the driver 'command' needs a command: in its file");
  }
  STINT_CHECK(driver::make_dialect(plan.driver));
  STINT_CHECK(check_trust(agent, place, around));
  STINT_CHECK(plan_limits(agent, place, plan));
  STINT_CHECK(plan_budget(options, agent, place, now, plan));
  plan_attempt(options, agent, catalogue, std::move(rendered), plan);
  STINT_CHECK(plan_tools(agent, plan));
  plan.marks = os::mark_parts(os::environment(os::kMarkVariable));
  plan.memory_bytes_max = agent.memory_bytes_max.value_or(0);
  if (agent.home == domain::AgentHome::slot) {
    plan.homes = (std::filesystem::path(place.homes.agents).parent_path() / "homes" / agent.name).string();
    plan.home_limit = domain::agent_limit(agent.name);
  }
  plan.retry = agent.retry;
  plan.on_crash = agent.on_crash;
  plan.idle_timeout = agent.idle_timeout.value_or(plan.idle_timeout);
  plan.may_wait = !options.no_wait;
  plan.directory = place.project.root.string();
  return plan;
}

}  // namespace stint::cli
