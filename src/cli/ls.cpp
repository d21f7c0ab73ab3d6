#include "cli/ls.hpp"

#include "cli/fleet_place.hpp"
#include "cli/fleet_text.hpp"
#include "cli/print.hpp"
#include "engine/views.hpp"
#include "wire/fleet.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stint::cli {
namespace {

constexpr std::uint32_t kLimitMax = 1000, kRunsPage = 200;

void print(const std::vector<engine::RunView>& runs, const FleetAccess& access, bool with_heads) {
  const Table table = runs_table(runs, access.system.wall_now());
  const std::vector<Line> lines =
      table.lines(access.environment.terminal ? access.environment.columns : 0, kRunsElastic);
  for (std::size_t i = with_heads ? 0 : 1; i < lines.size(); ++i) {
    print_out("{}\n", lines[i].str(access.environment.colour));
  }
}

store::Filter filter_of(const ListOptions& options) {
  store::Filter filter;
  for (const std::string& name : options.states) {
    if (const auto state = domain::parse_run_state(name)) filter.states.push_back(*state);
  }
  filter.agent = options.agent;
  filter.session = options.session;
  filter.most = options.all ? kRunsPage : options.limit;
  return filter;
}

void say_none(const store::Filter& filter) {
  const bool filtered = !filter.states.empty() || !filter.agent.empty() || !filter.session.empty();
  print_out("No runs{}. `stint submit AGENT` submits one.\n", filtered ? " match" : " yet");
}

/// Prints page by page, so that the first appears at once; JSON is one object.
Task<Result<int>> list_all(FleetAccess& access, const ListOptions& options, store::Filter filter) {
  std::vector<engine::RunView> whole;
  for (bool first = true;; first = false) {
    STINT_CO_TRY(std::vector<engine::RunView> page, co_await access.fleet.list(filter));
    const bool last = page.size() < kRunsPage;
    if (!page.empty()) filter.before = page.back().run.number;
    if (options.json) {
      std::ranges::move(page, std::back_inserter(whole));
    } else if (!page.empty()) {
      print(page, access, first);
    } else if (first) {
      say_none(filter);
    }
    if (last) break;
  }
  if (options.json) print_out("{}\n", wire::to_json(whole, {}));
  co_return kExitDone;
}

Task<Result<int>> list(FleetAccess& access, const ListOptions& options) {
  const store::Filter filter = filter_of(options);
  if (options.all) co_return co_await list_all(access, options, filter);
  STINT_CO_TRY(const std::vector<engine::RunView> runs, co_await access.fleet.list(filter));
  if (options.json) {
    print_out("{}\n", wire::to_json(runs, {}));
  } else if (runs.empty()) {
    say_none(filter);
  } else {
    print(runs, access, true);
    if (runs.size() == options.limit) {
      print_error("Showing the newest {}; --limit N or --all shows more.\n", runs.size());
    }
  }
  co_return kExitDone;
}

}  // namespace

ListCommand::ListCommand(CLI::App& app) : command_(app, "ls", "List runs, newest first") {
  command_.footer(
      "Every command takes a unique prefix instead of a run's id. `stint show ID` shows everything about one run.");
  std::vector<std::string> names;
  for (const domain::RunState state : domain::kRunStates) names.emplace_back(to_string(state));
  command_.option("--state", options_.states, "List only runs in this state; may be repeated").one_of(names);
  command_.option("--agent", options_.agent, "List only runs of this agent").value("NAME");
  command_.option("--session", options_.session, "List only runs of this session").value("KEY");
  command_.option("-n,--limit", options_.limit, "List at most this many").whole(1, kLimitMax).shows_default();
  command_.flag("--all", options_.all, "List all, page by page");
  command_.flag("--json", options_.json, "Print one JSON object");
}

bool ListCommand::chosen() const { return command_.chosen(); }

int ListCommand::run(const domain::System& system) {
  return run_on_fleet(system, {}, [this](FleetAccess& access) { return list(access, options_); });
}

}  // namespace stint::cli
