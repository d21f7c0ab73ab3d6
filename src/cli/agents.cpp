#include "cli/agents.hpp"

#include "agent/arguments.hpp"
#include "agent/check.hpp"
#include "agent/quantity.hpp"
#include "cli/environment.hpp"
#include "cli/exit_status.hpp"
#include "cli/fleet_place.hpp"
#include "cli/fleet_text.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "engine/reports.hpp"
#include "wire/agents.hpp"
#include "wire/reports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace stint::cli {
namespace {

using domain::Agent;

constexpr std::size_t kNameColumnsMax = 24;

std::string driver_of(const Agent& agent, const agent::Settings& settings) {
  std::string out((agent.driver != nullptr ? agent.driver : settings.driver)->name);
  if (!agent.model.empty()) out += "/" + agent.model;
  return out;
}

std::string at_once(const Agent& agent) {
  return agent.max_concurrency ? fmt::format("max {}", *agent.max_concurrency) : std::string("-");
}

void print_table(const std::vector<Agent>& agents, const agent::Settings& settings, const Environment& environment) {
  std::size_t name_width = 4;
  std::size_t driver_width = 6;
  for (const Agent& agent : agents) {
    name_width = std::max(name_width, std::min(agent.name.size(), kNameColumnsMax));
    driver_width = std::max(driver_width, std::min(printable(driver_of(agent, settings)).size(), kNameColumnsMax));
  }
  for (const Agent& agent : agents) {
    Line line;
    line.add(fmt::format("{:{}}", agent.name, name_width), Style::bold);
    line.add(fmt::format("  {:9}  {:{}}  ", at_once(agent), printable(driver_of(agent, settings)), driver_width));
    line.add(printable(agent.description));
    if (agent.format != domain::AgentFormat::stint)
      line.add(fmt::format("  ({})", to_string(agent.format)), Style::dim);
    print_out("{}\n", (environment.terminal ? line.clipped(environment.columns, true) : line).str(environment.colour));
  }
}

class AgentSheet {
 public:
  explicit AgentSheet(bool colour) : colour_(colour) {}
  void add(std::string_view label, std::string_view value) const {
    if (value.empty()) return;
    Line line;
    line.add(fmt::format("  {:16}", label), Style::dim).add(printable(value));
    print_out("{}\n", line.str(colour_));
  }

 private:
  const bool colour_;
};

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? std::string() : std::string(between)) + word;
  return out;
}

std::string limits_of(const Agent& agent) {
  std::vector<std::string> out;
  for (const domain::LimitRequest& request : agent.limits) {
    out.push_back(request.weight == 1 ? request.name : fmt::format("{} × {}", request.weight, request.name));
  }
  return joined(out, ", ");
}

std::string budget_of(const Agent& agent) {
  std::vector<std::string> out;
  if (agent.budget.time) out.push_back("time " + agent::format_duration(*agent.budget.time));
  if (agent.budget.attempts) out.push_back(fmt::format("attempts {}", *agent.budget.attempts));
  if (agent.budget.tokens) out.push_back(fmt::format("tokens {}", *agent.budget.tokens));
  if (agent.budget.cost_micros) out.push_back("cost " + agent::format_cost(*agent.budget.cost_micros));
  return joined(out, ", ");
}

void print_one(const Agent& agent, const agent::Settings& settings, const Environment& environment) {
  print_out("{}\n", Line(agent.name, Style::bold).str(environment.colour));
  const AgentSheet sheet(environment.colour);
  sheet.add("description", agent.description);
  sheet.add("file", agent.file);
  if (agent.format != domain::AgentFormat::stint) sheet.add("format", to_string(agent.format));
  sheet.add("usage", "stint run " + agent::usage(agent));
  for (const domain::ArgumentSpec& spec : agent.args) {
    std::string about = spec.description;
    const auto add = [&](const std::string& part) { about += (about.empty() ? "" : " ") + part; };
    if (spec.required) add("(required)");
    if (spec.fallback) add(fmt::format("(default: {})", *spec.fallback));
    sheet.add("  " + spec.name, about.empty() ? "-" : about);
  }
  sheet.add("at once", agent.max_concurrency ? std::to_string(*agent.max_concurrency) : "unlimited");
  sheet.add("limits", limits_of(agent));
  sheet.add("driver", driver_of(agent, settings));
  sheet.add("driver args", joined(agent.driver_args, " "));
  if (agent.permissions) sheet.add("permissions", to_string(*agent.permissions));
  std::vector<std::string> command;
  for (const domain::TemplateText& element : agent.command) command.push_back(element.text);
  sheet.add("command", joined(command, " "));
  if (agent.tool_names) sheet.add("tools", agent.tool_names->empty() ? "none" : joined(*agent.tool_names, ", "));
  sheet.add("tools denied", joined(agent.tool_names_denied, ", "));
  for (const domain::Tool& tool : agent.tools) {
    sheet.add("tool " + tool.name, fmt::format("{}: {}", to_string(tool.tool_class), joined(tool.command, " ")));
  }
  sheet.add("budget", budget_of(agent));
  if (agent.memory_bytes_max) sheet.add("memory", fmt::format("{} MiB", *agent.memory_bytes_max >> 20U));
  if (agent.home) sheet.add("home", to_string(*agent.home));
  if (agent.idle_timeout) sheet.add("idle timeout", agent::format_duration(*agent.idle_timeout));
  if (agent.on_crash) sheet.add("on crash", to_string(*agent.on_crash));
  sheet.add("next", joined(agent.next, ", "));
  if (agent.priority != 0) sheet.add("priority", std::to_string(agent.priority));
}

std::string halves(const std::optional<Duration>& half, const std::optional<Duration>& most) {
  if (!half || !most) return {};
  return fmt::format("half within {}, nine of ten within {}", length_text(*half), length_text(*most));
}

void print_day(const engine::AgentDetail& agent, const Environment& environment) {
  const store::EndedStats& ended = agent.day.ended;
  const AgentSheet sheet(environment.colour);
  sheet.add("last day", fmt::format("{} succeeded, {} failed, {} cancelled, {} expired{}", ended.succeeded,
                                    ended.failed, ended.cancelled, ended.expired,
                                    ended.complete ? "" : fmt::format(" of the newest {}", store::kEndedRunsMax)));
  sheet.add("  worked", halves(ended.worked_p50, ended.worked_p90));
  sheet.add("  waited", halves(ended.waited_p50, ended.waited_p90));
  sheet.add("  used",
            fmt::format("{} tokens, ${} in {}", agent.day.used.tokens, agent::format_cost(agent.day.used.cost_micros),
                        some(static_cast<std::uint64_t>(agent.day.used.attempts), "attempt")));
  for (const engine::RunView& view : agent.day.failures) {
    sheet.add("  " + view.run.id, fmt::format("{}: {}", to_string(view.run.state), view.run.error));
  }
}

}  // namespace

AgentsCommand::AgentsCommand(CLI::App& app)
    : command_(app, "agents", "List the agents of this project, and problems of their files") {
  command_.footer(
      "Agents are Markdown files in .stint/agents; those in .claude/agents, .coven/agents, .gemini/agents,\n"
      ".opencode/agents and .github/agents work, too. Exit status 1 if a file has errors.");
  command_.option("NAME", name_, "Show this agent with all its fields, and statistics of the last day");
  command_.flag("--json", json_, "Print one JSON object: agents and problems");
}

bool AgentsCommand::chosen() const { return command_.chosen(); }

int AgentsCommand::run(const domain::System& system) {
  const Environment environment = blocking_read_environment();
  const auto project = agent::blocking_find_project(environment.folder);
  if (!project) return complain(project.error());
  const agent::LoadedSettings loaded = agent::blocking_load_settings(project->root, environment.variables);
  const agent::Catalogue catalogue = agent::blocking_discover(project->root);

  std::vector<agent::Problem> problems = loaded.problems;
  problems.insert(problems.end(), catalogue.problems.begin(), catalogue.problems.end());
  for (agent::Problem& problem : agent::check_whole(catalogue, loaded.settings)) problems.push_back(std::move(problem));
  std::vector<Agent> shown = catalogue.agents;
  if (!name_.empty()) {
    std::erase_if(shown, [&](const Agent& agent) { return agent.name != name_; });
    const std::string file = shown.empty() ? "/" + name_ + ".md" : shown[0].file;
    std::erase_if(problems, [&](const agent::Problem& problem) { return !problem.file.ends_with(file); });
    if (shown.empty() && problems.empty()) {
      const std::string suggestion = catalogue.did_you_mean(name_);
      return complain(
          {Errc::invalid, fmt::format("there is no agent '{}'{}", name_,
                                      suggestion.empty() ? "; `stint agents` lists them" : "; " + suggestion)});
    }
  }
  std::optional<engine::AgentDetail> statistics;
  if (!name_.empty()) {
    // A store that can't be read is reported, and hides nothing of the file.
    const int status = run_on_fleet(system, {}, [&](FleetAccess& access) -> Task<Result<int>> {
      STINT_CO_TRY(statistics, co_await access.fleet.agent(name_));
      co_return kExitDone;
    });
    if (status >= kExitBySignal) return status;
  }
  if (json_) {
    print_out("{}\n",
              statistics ? wire::agent_to_json(shown, problems, *statistics) : wire::agents_to_json(shown, problems));
  } else {
    if (name_.empty()) print_table(shown, loaded.settings, environment);
    if (!name_.empty() && !shown.empty()) print_one(shown[0], loaded.settings, environment);
    if (statistics) print_day(*statistics, environment);
    if (shown.empty() && problems.empty()) {
      print_out("No agents yet. `{}stint init` writes the first ones.\n",
                project->is_repository() ? "" : "git init && ");
    }
    flush_out();
    print_problems(problems, environment);
  }
  return agent::has_errors(problems) ? kExitFailed : kExitDone;
}

}  // namespace stint::cli
