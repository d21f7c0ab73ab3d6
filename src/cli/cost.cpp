#include "cli/cost.hpp"

#include "agent/quantity.hpp"
#include "cli/fleet_place.hpp"
#include "cli/fleet_text.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "engine/reports.hpp"
#include "wire/reports.hpp"
#include "wire/time_text.hpp"

#include <fmt/format.h>

namespace stint::cli {
namespace {

using std::chrono::milliseconds;

/// A duration back from now, a day, or a time; nothing: from the beginning.
Result<WallTime> read_since(const std::string& text, WallTime now) {
  if (text.empty()) return WallTime();
  if (const auto day = wire::parse_time(text + "T00:00:00Z")) return *day;
  if (const auto time = wire::parse_time(text)) return *time;
  const auto length = agent::parse_duration(text);
  if (length) return now - std::chrono::duration_cast<milliseconds>(*length);
  return fail(Errc::invalid,
              "--since " + text + ": write a duration (7d, 12h), a day (2026-11-15) or a time (RFC 3339)");
}

std::string amount_text(std::int64_t cost_micros) { return "$" + agent::format_cost(cost_micros); }

void print(const engine::CostReport& report, const engine::CostQuery& query, const FleetAccess& access) {
  std::vector<std::string> heads;
  if (query.day) heads.emplace_back("DAY");
  if (query.agent) heads.emplace_back("AGENT");
  if (query.run) heads.emplace_back("RUN");
  std::vector<bool> right(heads.size(), false);
  for (const char* head : {"ATTEMPTS", "TOKENS", "COST"}) {
    heads.emplace_back(head);
    right.push_back(true);
  }
  if (query.run) heads.emplace_back("TITLE");
  const std::size_t elastic = heads.size() - 1;
  Table table(std::move(heads), std::move(right));
  for (const engine::CostLine& line : report.lines) {
    std::vector<Line> cells;
    if (query.day) cells.emplace_back(line.day);
    if (query.agent) cells.emplace_back(printable(line.agent));
    if (query.run) cells.emplace_back(line.run);
    cells.emplace_back(std::to_string(line.attempts));
    cells.emplace_back(std::to_string(line.tokens));
    cells.emplace_back(amount_text(line.cost_micros));
    if (query.run) cells.emplace_back(printable(line.title));
    table.add(std::move(cells));
  }
  for (const Line& line : table.lines(access.environment.terminal ? access.environment.columns : 0, elastic)) {
    if (!table.empty()) print_out("{}\n", line.str(access.environment.colour));
  }
  print_out("{}: {} tokens, {}\n", report.lines.empty() && report.total.attempts == 0 ? "Nothing was used" : "Total",
            report.total.tokens, amount_text(report.total.cost_micros));
  if (!report.complete) {
    print_error("Only the newest {} runs are counted; --since leaves out older ones.\n", engine::kCostRunsMax);
  }
}

Task<Result<int>> show(FleetAccess& access, const CostOptions& options) {
  STINT_CO_TRY(engine::CostQuery query, wire::read_cost_by(options.by));
  STINT_CO_TRY(query.since, read_since(options.since, access.system.wall_now()));
  STINT_CO_TRY(const engine::CostReport report, co_await access.fleet.cost(query));
  if (options.json) {
    print_out("{}\n", wire::to_json(report));
  } else {
    print(report, query, access);
  }
  co_return kExitDone;
}

}  // namespace

CostCommand::CostCommand(CLI::App& app) : command_(app, "cost", "Show what runs have used, by agent, day or run") {
  command_.footer(
      "By agent and day it adds up attempts, as the dashboard does, also of runs that were deleted since; days are in\n"
      "UTC, and --since means the whole day. By run it lists the runs that were submitted since then, with all that\n"
      "each has used. What a running attempt has reported so far is included.");
  command_.option("--by", options_.by, "Divide by these: agent, day, run; several with commas")
      .value("WORDS")
      .shows_default();
  command_.option("--since", options_.since, "Count from then on: 7d, 2026-11-15, or a time").value("WHEN");
  command_.flag("--json", options_.json, "Print one JSON object");
}

bool CostCommand::chosen() const { return command_.chosen(); }

int CostCommand::run(const domain::System& system) {
  return run_on_fleet(system, {}, [this](FleetAccess& access) { return show(access, options_); });
}

}  // namespace stint::cli
