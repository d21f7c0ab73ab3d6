#include "cli/logs.hpp"

#include "cli/exit_status.hpp"
#include "cli/fleet_place.hpp"
#include "cli/fleet_text.hpp"
#include "cli/output_printer.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "engine/views.hpp"
#include "fleet/follow.hpp"
#include "wire/fleet.hpp"

#include <fmt/format.h>

namespace stint::cli {
namespace {

/// Prints why a followed run has not begun.
Task<Result<>> print_wait(FleetAccess& access, const engine::RunView& view) {
  if (view.run.state != domain::RunState::queued && view.run.state != domain::RunState::parked) co_return Result<>();
  STINT_CO_TRY(const engine::WhyView why, co_await access.fleet.why(view.run.id));
  STINT_CO_TRY(const bool carried, co_await access.connection.is_carried());
  for (const std::string& line : why_lines(why, access.system.wall_now(), carried)) {
    print_error("stint: {}: {}\n", printable(view.run.id), line);
  }
  co_return Result<>();
}

struct LogsRequest {
  const std::string& id;
  bool follow, raw, json;
};

Task<Result<int>> print_logs(FleetAccess& access, LogsRequest request) {
  STINT_CO_TRY(const engine::RunView view, co_await find_run(access.fleet, request.id));
  if (request.json) {
    STINT_CO_TRY(const store::Output output, co_await access.fleet.output(view.run.id));
    print_out("{}\n", wire::to_json(output));
    co_return kExitDone;
  }
  OutputPrinter printer(access.environment.colour, request.raw || !access.environment.terminal);
  if (request.follow) {
    STINT_CO_CHECK(co_await print_wait(access, view));
    const auto out = [&](const fleet::OutputReader::Piece& piece) { printer.print(piece); };
    STINT_CO_TRY(const engine::RunView end,
                 co_await fleet::follow(access.fleet, access.clock, view.run.id, out, print_outage));
    printer.finish();
    print_error("stint: {} {}\n", printable(end.run.id), state_text(end.run));
    co_return exit_status(end.run);
  }
  STINT_CO_TRY(const store::Output output, co_await access.fleet.output(view.run.id));
  fleet::OutputReader reader;
  for (const fleet::OutputReader::Piece& piece : reader.take(output)) printer.print(piece);
  printer.finish();
  if (output.bytes == 0) {
    print_error("stint: {} has printed nothing{}\n", printable(view.run.id),
                engine::is_at_rest(view.run) ? "" : " yet; -f waits for it");
  }
  co_return kExitDone;
}

}  // namespace

LogsCommand::LogsCommand(CLI::App& app) : command_(app, "logs", "Print the output of a run") {
  command_.footer(
      "The store keeps both ends of a long output. On a terminal control sequences other than colour are removed,\n"
      "elsewhere every byte passes unchanged. With -f the exit status is that of the run: 0 done · 1 failed ·\n"
      "4 budget or deadline · 5 cancelled · 6 in doubt.");
  command_.option("ID", id_, "Give the run's id, or a unique prefix").value("").required();
  command_.flag("-f,--follow", follow_, "Follow the output until the run ends");
  const Option raw = command_.flag(
      "--raw", raw_, "Print the bytes unchanged, also on a terminal; through a daemon, invalid UTF-8 comes as U+FFFD");
  command_.flag("--json", json_, "Print one JSON object").excludes(raw);
}

bool LogsCommand::chosen() const { return command_.chosen(); }

int LogsCommand::run(const domain::System& system) {
  return run_on_fleet(system, {}, [this](FleetAccess& access) {
    return print_logs(access, LogsRequest{.id = id_, .follow = follow_, .raw = raw_, .json = json_});
  });
}

}  // namespace stint::cli
