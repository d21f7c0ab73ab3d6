#include "project/attempt_planner.hpp"

#include "agent/agent_file.hpp"
#include "agent/files.hpp"
#include "agent/template.hpp"
#include "agent/trust.hpp"
#include "domain/trace.hpp"
#include "os/variables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>

namespace stint::project {
namespace {

constexpr std::string_view kTokenVariable = "STINT_TOKEN=";

/// A separate home for a CLI's login and conversations, one for each permit of the agent.
Result<std::string> blocking_make_home(const Snapshot& snapshot, const domain::Agent& agent,
                                       const domain::DriverDescriptor& driver, std::uint32_t slot) {
  STINT_TRY(const auto homes, agent::blocking_find_homes_of_agents(snapshot.state, snapshot.checkout.project));
  const std::string home = (homes / agent.name / std::to_string(slot)).string();
  std::error_code error;
  std::filesystem::create_directories(home, error);
  if (!error) std::filesystem::permissions(homes, std::filesystem::perms::owner_all, error);
  if (!error) std::filesystem::permissions(home, std::filesystem::perms::owner_all, error);
  if (error) return fail(Errc::failed, "cannot create " + home + ": " + error.message());
  return fmt::format("{}={}", driver.home_variable, home);
}

/// The folder that a run works in, as a real path. The path in a store is untrusted data: it may only name a folder of
/// the served checkout, of one of its worktrees, or one in which this user has run something.
Result<std::string> blocking_find_folder(const Snapshot& snapshot, const std::string& stored) {
  const agent::Project& own = snapshot.checkout.project;
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(own.root / stored, error);
  if (error || !std::filesystem::is_directory(real, error)) {
    return fail(Errc::invalid,
                fmt::format("the folder of this run, {}, does not exist any more: the checkout was deleted "
                            "or moved. Start the run again with `stint run` or `stint submit`",
                            (own.root / stored).string()));
  }
  if (agent::is_within(own.root, real)) return real.string();
  const auto there = agent::blocking_find_project(real);
  if (there && own.is_repository() && there->identity() == own.identity()) return real.string();
  STINT_TRY(const bool allowed, agent::blocking_is_folder_allowed(snapshot.state, real));
  if (allowed) return real.string();
  return fail(Errc::denied,
              fmt::format("the folder of this run, {}, is not a part of {} or one of its worktrees, and this user has "
                          "run nothing there: a store must not choose where an agent works. Start the run again with "
                          "`stint run` in that folder, or with `stint submit` here",
                          real.string(), own.root.string()));
}

/// Whether files in the folder of a run may decide what is started there. A run from the store may name any folder of
/// this machine, and trust in the served project does not extend to another one.
Result<bool> blocking_is_trusted_there(const Snapshot& snapshot, const std::string& directory) {
  const agent::Project& own = snapshot.checkout.project;
  if (directory == own.root) return snapshot.trusted;  // the common case
  STINT_TRY(const agent::Project there, agent::blocking_find_project(directory));
  return agent::blocking_is_trusted(snapshot.state, there);
}

/// Fails if the order's program must not be started in the folder of its run; else returns whether the folder is
/// trusted.
Result<bool> blocking_check_order(const Snapshot& snapshot, const AgentSpec& spec, const domain::WorkOrder& order,
                                  const std::string& directory, const std::string& named) {
  const std::string& program = order.input.program;
  if (!program.empty() && program != named && !agent::blocking_is_program_allowed(snapshot.state, program)) {
    return fail(Errc::denied, "the run's program " + program +
                                  " was not named on this machine by this user: a store does not decide what is "
                                  "started. `stint run --program` names it");
  }
  const domain::DriverDescriptor& driver = driver_of(spec.agent, order.input.driver);
  STINT_TRY(const bool trusted, blocking_is_trusted_there(snapshot, directory));
  if (trusted) return true;
  STINT_TRY(const agent::Project there, agent::blocking_find_project(directory));
  auto things = agent::things_that_need_trust(spec.agent, driver);
  for (auto& thing : agent::blocking_find_git_things(there)) things.push_back(std::move(thing));
  if (things.empty()) return false;
  return fail(agent::untrusted(there, things.front()));
}

/// Names the files that an agent does not read because its checkout is not trusted; empty: there are none.
std::string blocking_what_is_left_out(const std::string& directory, const domain::DriverDescriptor& driver,
                                      bool system_file) {
  std::string files = system_file ? "system.md" : "";
  for (const agent::TrustedThing& thing : agent::blocking_find_cli_settings(directory, &driver)) {
    files += (files.empty() ? "" : ", ") + thing.where;
  }
  if (files.empty()) return {};
  return fmt::format("{} is not trusted, so {} does not read {}. Run `stint trust` there to allow it", directory,
                     driver.name, files);
}

Result<domain::Invocation> invocation_of(const Snapshot& snapshot, const domain::Agent& agent,
                                         const domain::WorkOrder& order) {
  domain::Agent filled = agent;
  if (!order.input.prompt.empty()) filled.prompt.text = agent::Template::escape(order.input.prompt);
  STINT_TRY(agent::RenderedAgent rendered, agent::render(filled, order.input.args));
  domain::Invocation invocation;
  invocation.prompt = std::move(rendered.prompt);
  invocation.command = std::move(rendered.command);
  invocation.model = order.input.model.empty() ? agent.model : order.input.model;
  invocation.program = order.input.program;
  invocation.driver_args = agent.driver_args;
  invocation.permissions = agent.permissions.value_or(domain::Permissions::edit);
  // Instructions of an untrusted checkout are not added to a prompt that a person has written.
  const bool own_prompt = agent.name == domain::kPromptAgent;
  if (snapshot.trusted || !own_prompt) invocation.system_prompt = snapshot.catalogue.system_prompt;
  if (!agent.system_prompt.empty()) {
    if (!invocation.system_prompt.empty()) invocation.system_prompt += "\n\n";
    invocation.system_prompt += agent.system_prompt;
  }
  if (agent.turns_max) invocation.turns_max = static_cast<int>(*agent.turns_max);
  invocation.tools = agent.tool_names;
  invocation.tools_denied = agent.tool_names_denied;
  if (order.left.tokens) invocation.tokens_max = std::max<std::int64_t>(0, *order.left.tokens);
  if (order.left.cost_micros) invocation.cost_micros_max = std::max<std::int64_t>(0, *order.left.cost_micros);
  invocation.new_conversation = order.new_conversation;
  if (order.conversation.empty()) return invocation;
  invocation.conversation = order.conversation;
  invocation.usage_before = order.usage_before;
  invocation.prompt = "Your work was interrupted (" + order.interrupted +
                      "). What you had begun may be done, half done or not done: look first, then go on with the task.";
  return invocation;
}

}  // namespace

std::vector<std::string> secrets_to_withhold(const agent::EnvironmentVariables& environment, const std::string& store) {
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  std::vector<std::string> changes;
  // Within a run they are the run's own token, which the runs below it may use.
  if (value("STINT_RUN").empty()) changes = {"STINT_TOKEN", "STINT_URL"};
  const std::string address = value("STINT_STORE");
  if (agent::without_password(address) != address) changes.push_back("STINT_STORE=" + agent::without_password(address));
  if (store.find("://") != std::string::npos) changes.emplace_back("PGPASSWORD");
  return changes;
}

std::vector<std::string> untrusted_environment(const agent::EnvironmentVariables& environment,
                                               const std::vector<std::string>& submodules) {
  const auto value = [&](const std::string& name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  std::vector<std::string> changes;
  std::string path;
  const std::string given = value("PATH");
  for (std::size_t from = 0; from <= given.size();) {
    const std::size_t to = std::min(given.find(':', from), given.size());
    const std::string entry = given.substr(from, to - from);
    from = to + 1;
    if (entry.starts_with('/')) path += (path.empty() ? "" : ":") + entry;
  }
  if (path != given) changes.push_back("PATH=" + path);
  std::vector<std::pair<std::string, std::string>> git{
      {"core.fsmonitor", "false"}, {"core.hooksPath", "/dev/null"}, {"diff.ignoreSubmodules", "all"}};
  for (const std::string& name : submodules) {
    if (!name.empty() && !name.contains('\0')) git.emplace_back("submodule." + name + ".ignore", "all");
  }
  std::size_t count = 0;
  const std::string before = value("GIT_CONFIG_COUNT");
  std::from_chars(before.data(), before.data() + before.size(), count);
  for (const auto& [key, text] : git) {
    changes.push_back(fmt::format("GIT_CONFIG_KEY_{}={}", count, key));
    changes.push_back(fmt::format("GIT_CONFIG_VALUE_{}={}", count++, text));
  }
  changes.push_back(fmt::format("GIT_CONFIG_COUNT={}", count));
  return changes;
}

namespace {

/// An order, and what this process adds to it. All of it lives in the frame that waits for the plan.
struct OrderHere {
  const domain::WorkOrder& order;
  std::vector<std::string> environment;
  std::string program;  ///< named on the command line; empty: none
  const AttemptPlanner::Options& options;
};

Result<> blocking_add_environment(domain::AttemptSpec& spec, const Snapshot& snapshot, const domain::Agent& agent,
                                  const OrderHere& here) {
  const domain::WorkOrder& order = here.order;
  const auto variables = os::environment_variables();
  spec.environment = secrets_to_withhold(variables, snapshot.checkout.settings.store);
  const auto add = [&](std::vector<std::string> changes) {
    std::ranges::move(changes, std::back_inserter(spec.environment));
  };
  if (!spec.invocation.reads_checkout) {
    const auto there = agent::blocking_find_project(spec.directory);
    add(untrusted_environment(variables, there ? agent::blocking_find_submodules(*there) : std::vector<std::string>()));
  }
  add(here.environment);
  spec.environment.push_back("TRACEPARENT=" + domain::traceparent(order.input.trace, order.mark()));
  for (const std::string& each : spec.environment) {
    if (each.starts_with(kTokenVariable)) spec.secrets.push_back(each.substr(kTokenVariable.size()));
  }
  if (agent.home != domain::AgentHome::slot || driver_of(agent, spec.driver).home_variable.empty()) return {};
  STINT_TRY(std::string variable,
            blocking_make_home(snapshot, agent, driver_of(agent, spec.driver), order.slot.value_or(0)));
  spec.environment.push_back(std::move(variable));
  return {};
}

/// For a driver that makes its calls in this process: where they go, and what it may call.
Result<> blocking_add_calls(domain::AttemptSpec& spec, const Snapshot& snapshot, const domain::Agent& agent,
                            const OrderHere& here) {
  const agent::Settings& settings = snapshot.checkout.settings;
  if (!snapshot.trusted) {
    const auto sent = agent::endpoint_that_needs_trust(settings);
    if (sent) return fail(agent::untrusted(snapshot.checkout.project, *sent));
  }
  if (!here.options.blocking_resolve_model) return fail(Errc::invalid, "this process calls no models");
  STINT_TRY(ResolvedModel model, here.options.blocking_resolve_model(settings, spec.invocation.model));
  spec.endpoint = std::move(model.endpoint);
  if (model.price.known()) spec.invocation.price = model.price;
  if (!spec.endpoint.key.empty()) spec.secrets.push_back(spec.endpoint.key);
  if (!model.key_variable.empty()) spec.environment.push_back(model.key_variable);  // its tools don't need the key
  spec.tools = agent.tools;
  spec.output = agent.output;
  for (const domain::LimitRequest& limit : agent.limits) {
    if (snapshot.process_limits.contains(limit.name)) spec.call_limits.push_back(limit);
  }
  std::ranges::sort(spec.call_limits, {}, &domain::LimitRequest::name);  // one order for all: no deadlock
  return {};
}

Result<domain::AttemptSpec> blocking_plan(const Snapshot& snapshot, const OrderHere& here) {
  const domain::WorkOrder& order = here.order;
  const auto found = snapshot.registry.find(order.agent);
  if (found == snapshot.registry.end())
    return fail(Errc::invalid, "this node has no agent '" + order.agent + "' any more");
  const AgentSpec& agent = found->second;
  if (agent.refused) return fail(*agent.refused);
  domain::AttemptSpec spec;
  spec.driver = order.input.driver.empty() ? std::string(agent.agent.driver->name) : order.input.driver;
  // Checked at submit, too; but the agent's file may have changed since, and imported runs were never checked.
  if (const auto no = agent.refused_drivers.find(spec.driver); no != agent.refused_drivers.end()) {
    return fail(no->second);
  }
  STINT_TRY(spec.invocation, invocation_of(snapshot, agent.agent, order));
  spec.invocation.price = price_of(agent.prices, spec.invocation.model, spec.driver);
  STINT_TRY(spec.directory, blocking_find_folder(snapshot, order.input.directory));
  STINT_TRY(const bool trusted_there, blocking_check_order(snapshot, agent, order, spec.directory, here.program));
  spec.invocation.reads_checkout = snapshot.trusted && trusted_there;
  spec.idle_timeout = agent.agent.idle_timeout;
  spec.memory_bytes_max = agent.agent.memory_bytes_max.value_or(0);
  STINT_CHECK(blocking_add_environment(spec, snapshot, agent.agent, here));
  if (driver_of(agent.agent, spec.driver).calls_in_process) {
    STINT_CHECK(blocking_add_calls(spec, snapshot, agent.agent, here));
  }
  if (!spec.invocation.reads_checkout) {
    const bool left_out = agent.agent.name == domain::kPromptAgent && !snapshot.catalogue.system_prompt.empty();
    spec.note = blocking_what_is_left_out(spec.directory, driver_of(agent.agent, spec.driver), left_out);
  }
  return spec;
}

}  // namespace

AttemptPlanner::AttemptPlanner(BlockingPool& files, CurrentSnapshot snapshot, Options options)
    : files_(files), snapshot_(std::move(snapshot)), options_(std::move(options)) {}

Task<Result<domain::AttemptSpec>> AttemptPlanner::plan(const domain::WorkOrder& order) {
  const auto snapshot = snapshot_();
  const OrderHere here{.order = order,
                       .environment = options_.environment ? options_.environment(order) : std::vector<std::string>(),
                       .program = options_.program,
                       .options = options_};
  auto planned = co_await offload(files_, [&] { return blocking_plan(*snapshot, here); });
  if (planned || planned.error() != Errc::unavailable) co_return planned;
  // No thread could be started: the run may begin when the host has room for one.
  co_return fail(Error(Errc::exhausted, Retry::safe, "the attempt could not be planned").because(planned.error()));
}

}  // namespace stint::project
