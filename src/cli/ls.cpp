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

void say_none(const ListOptions& options) {
  print_out("No runs{}. `stint submit AGENT` submits one.\n", options.filter.given() ? " match" : " yet");
}

/// Prints page by page, so that the first appears at once; JSON is one object.
Task<Result<int>> list_all(FleetAccess& access, const ListOptions& options, engine::Search search) {
  std::vector<engine::RunView> whole;
  search.filter.most = kRunsPage;
  bool any = false;
  while (true) {
    STINT_CO_TRY(engine::RunPage page, co_await access.fleet.search(search));
    if (options.json) {
      std::ranges::move(page.runs, std::back_inserter(whole));
    } else if (!page.runs.empty()) {
      print(page.runs, access, !any);
      any = true;
    }
    if (page.next.empty()) break;
    search.cursor = page.next;
  }
  if (options.json) {
    print_out("{}\n", wire::to_json(whole, {}));
  } else if (!any) {
    say_none(options);
  }
  co_return kExitDone;
}

Task<Result<int>> list(FleetAccess& access, const ListOptions& options) {
  engine::Search search;
  STINT_CO_TRY(search.filter, options.filter.read(access.system.wall_now()));
  if (options.all) co_return co_await list_all(access, options, std::move(search));
  search.filter.most = options.limit;
  STINT_CO_TRY(const engine::RunPage page, co_await access.fleet.search(std::move(search)));
  if (options.json) {
    print_out("{}\n", wire::to_json(page.runs, {}));
    co_return kExitDone;
  }
  if (page.runs.empty() && page.next.empty()) {
    say_none(options);
  } else if (!page.runs.empty()) {
    print(page.runs, access, true);
  }
  if (page.runs.size() == options.limit) {
    print_error("Showing the newest {}; --limit N or --all shows more.\n", page.runs.size());
  } else if (!page.next.empty()) {
    print_error("Only the newest runs were searched; --all searches all of them.\n");
  }
  co_return kExitDone;
}

}  // namespace

ListCommand::ListCommand(CLI::App& app) : command_(app, "ls", "List runs, newest first") {
  command_.footer(
      "Every command takes a unique prefix instead of a run's id. `stint show ID` shows everything about one run. A\n"
      "search ignores the case of the letters a to z; no character is a wildcard.");
  options_.filter.add_to(command_, "List only");
  command_.option("-n,--limit", options_.limit, "List at most this many").whole(1, kLimitMax).shows_default();
  command_.flag("--all", options_.all, "List all, page by page");
  command_.flag("--json", options_.json, "Print one JSON object");
}

bool ListCommand::chosen() const { return command_.chosen(); }

int ListCommand::run(const domain::System& system) {
  return run_on_fleet(system, {}, [this](FleetAccess& access) { return list(access, options_); });
}

}  // namespace stint::cli
