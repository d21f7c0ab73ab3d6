#include "cli/batch.hpp"

#include "cli/exit_status.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "domain/run_id.hpp"
#include "wire/batch.hpp"

#include <fmt/format.h>

#include <iostream>
#include <unistd.h>

namespace stint::cli {
namespace {

using store::Batch;
using store::BatchAction;
using store::BatchState;

std::string runs_text(std::uint64_t count) { return fmt::format("{} run{}", count, count == 1 ? "" : "s"); }

std::string question(BatchAction action, std::uint64_t matched) {
  return action == BatchAction::cancel ? fmt::format("Cancel {} and end their processes? [y/N] ", runs_text(matched))
                                       : fmt::format("Submit {} again, as new runs? [y/N] ", runs_text(matched));
}

/// Blocks: nothing else happens in a command that asks.
bool blocking_confirm(const std::string& text) {
  write_error(text);
  std::string answer;
  return std::getline(std::cin, answer) && (answer == "y" || answer == "Y" || answer == "yes");
}

std::string report_text(const Batch& batch) {
  std::string text = fmt::format("{} {} of {}", batch.action == BatchAction::cancel ? "Cancelled" : "Submitted again",
                                 batch.done, runs_text(batch.matched));
  if (batch.skipped > 0) text += fmt::format("; {} had ended before", batch.skipped);
  if (batch.failed > 0) text += fmt::format("; {} failed", batch.failed);
  if (batch.state == BatchState::stopped) text += fmt::format("; stopped with {} left", batch.matched - batch.acted());
  return text + ".";
}

void print_failures(const Batch& batch) {
  for (const store::BatchFailure& each : batch.failures) {
    print_error("stint: {}: {}\n", printable(each.run), printable(each.error));
  }
  if (batch.failed > batch.failures.size()) {
    print_error("stint: and {} more that failed\n", batch.failed - batch.failures.size());
  }
}

/// Rewrites one line of the terminal.
class Progress {
 public:
  explicit Progress(bool shown) : shown_(shown) {}
  void show(const Batch& batch) const {
    if (shown_) print_error("\r{} of {} …", batch.acted(), batch.matched);
  }
  void clear() const {
    if (shown_) print_error("\r\x1b[K");
  }

 private:
  const bool shown_;
};

/// Asks. Nothing: go on; else the exit status.
std::optional<int> blocking_refusal(BatchAction action, std::uint64_t matched) {
  if (::isatty(STDIN_FILENO) == 0) {
    complain(
        {Errc::invalid, fmt::format("{} match, and there is no terminal to ask on: use --yes", runs_text(matched))});
    return kExitUsage;
  }
  if (blocking_confirm(question(action, matched))) return std::nullopt;
  print_error("Nothing was done.\n");
  return kExitFailed;
}

Task<Result<int>> carry_out(FleetAccess& access, const engine::BatchRequest& request, bool json) {
  STINT_CO_TRY(const engine::BatchAnswer begun, co_await access.fleet.begin_batch(request));
  if (!begun.batch) {
    co_return fail(Errc::conflict, fmt::format("{} match now, not {}: nothing was done. Try again",
                                               runs_text(begun.matched), *request.expect));
  }
  const Progress progress(::isatty(STDERR_FILENO) == 1 && !json);
  auto ended = co_await access.fleet.follow_batch(begun.batch->id, [&](const Batch& now) { progress.show(now); });
  progress.clear();
  if (!ended) {
    print_error("stint: the end of batch {} is not known here\n", begun.batch->id);
    co_return fail(std::move(ended).error());
  }
  print_out("{}\n", json ? wire::to_json(*ended) : report_text(*ended));
  if (!json) print_failures(*ended);
  if (ended->state == BatchState::stopped) co_return kExitCancelled;
  co_return ended->failed > 0 ? kExitFailed : kExitDone;
}

}  // namespace

int blocking_run_batch(const domain::System& system, const fleet::ConnectionNeeds& needs, const BatchOptions& options) {
  engine::BatchRequest request;
  request.action = options.action;
  auto filter = options.filter.read(system.wall_now());
  if (!filter) {
    complain(filter.error());
    return kExitUsage;
  }
  request.filter = std::move(*filter);
  if (options.all && request.filter.states.empty()) {
    using domain::RunState;
    request.filter.states = options.action == BatchAction::cancel
                                ? std::vector{RunState::queued, RunState::running, RunState::parked}
                                : std::vector{RunState::failed, RunState::cancelled, RunState::expired};
  }
  request.dry_run = true;
  std::uint64_t matched = 0;
  const int counted = run_on_fleet(system, needs, [&](FleetAccess& access) -> Task<Result<int>> {
    STINT_CO_TRY(const engine::BatchAnswer answer, co_await access.fleet.begin_batch(request));
    matched = answer.matched;
    co_return kExitDone;
  });
  if (counted != kExitDone) return counted;
  if (matched == 0) {
    print_out("{}\n", options.json ? wire::dry_run_to_json(options.action, 0) : "No run matches.");
    return kExitDone;
  }
  if (const auto refused = options.yes ? std::nullopt : blocking_refusal(options.action, matched)) return *refused;
  request.dry_run = false;
  request.expect = matched;
  request.key = domain::new_run_id(system);  // a repeated request begins no second batch
  return run_on_fleet(system, needs, [&](FleetAccess& access) { return carry_out(access, request, options.json); });
}

}  // namespace stint::cli
