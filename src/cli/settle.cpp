#include "cli/settle.hpp"

#include "cli/batch.hpp"
#include "cli/exit_status.hpp"
#include "cli/fleet_place.hpp"
#include "cli/fleet_text.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "engine/views.hpp"
#include "wire/fleet.hpp"

#include <fmt/format.h>

namespace stint::cli {
namespace {

using domain::RunState;
using engine::RunView;

constexpr std::uint32_t kInboxMax = 1000;

Task<Result<int>> retry(FleetAccess& access, const std::string& id, bool json) {
  STINT_CO_TRY(const RunView before, co_await find_run(access.fleet, id));
  STINT_CO_TRY(const engine::Submitted submitted, co_await access.fleet.retry(before.run.id));
  print_out("{}\n", json ? wire::to_json(submitted, RunState::queued) : printable(submitted.id));
  STINT_CO_TRY(const bool carried, co_await access.connection.is_carried());
  if (!carried) print_error("stint: the run waits in the store: {}\n", kNoDaemonHere);
  co_return kExitDone;
}

Task<Result<int>> resolve(FleetAccess& access, const std::string& id, domain::Resolution how, bool json) {
  STINT_CO_TRY(const RunView before, co_await find_run(access.fleet, id));
  STINT_CO_TRY(const RunState state, co_await access.fleet.resolve(before.run.id, how));
  if (json) {
    print_out("{}\n", wire::resolved_to_json(before.run.id, state));
  } else {
    print_out("{}: {}\n", printable(before.run.id), to_string(state));
  }
  co_return kExitDone;
}

Task<Result<int>> show_inbox(FleetAccess& access, bool json) {
  std::vector<RunView> waiting;
  store::Filter filter;
  filter.states = {RunState::in_doubt, RunState::parked};
  filter.most = kInboxMax;
  STINT_CO_TRY(std::vector<RunView> runs, co_await access.fleet.list(std::move(filter)));
  for (RunView& view : runs) {
    if (engine::is_at_rest(view.run)) waiting.push_back(std::move(view));
  }
  if (json) {
    print_out("{}\n", wire::to_json(waiting, {}));
    co_return kExitDone;
  }
  if (waiting.empty()) print_out("No run waits for you.\n");
  for (const RunView& view : waiting) {
    Line line;
    line.add(printable(view.run.id), Style::bold).add("  " + printable(view.run.agent) + "  ");
    line.add(state_text(view.run), state_style(view.run.state));
    line.add("  " + age_text(access.system.wall_now() - view.run.created_at), Style::dim);
    print_out("{}\n", line.str(access.environment.colour));
    if (!view.input.title.empty()) print_out("  {}\n", printable(view.input.title));
    if (!view.run.error.empty()) print_out("  {}\n", printable(view.run.error));
    for (const std::string& step : next_steps(view.run)) print_out("  {}\n", step);
    print_out("\n");
  }
  co_return kExitDone;
}

}  // namespace

Task<Result<int>> answer_run(FleetAccess& access, const std::string& id, bool json) {
  STINT_CO_TRY(const RunView before, co_await find_run(access.fleet, id));
  STINT_CO_TRY(const engine::WhyView why, co_await access.fleet.why(before.run.id));
  STINT_CO_CHECK(co_await access.fleet.answer(before.run.id));
  if (json) {
    print_out("{}\n", wire::resolved_to_json(before.run.id, RunState::queued));
  } else {
    std::string with_it;  // the limit on which it was parked
    for (const domain::WaitReason& each : why.reasons) {
      using domain::WaitCause;
      if (each.cause == WaitCause::person || each.cause == WaitCause::quota) with_it = each.limit;
    }
    print_out("{}: goes on{}\n", printable(before.run.id),
              with_it.empty() ? std::string() : "; " + printable(with_it) + " is no longer paused");
  }
  STINT_CO_TRY(const bool carried, co_await access.connection.is_carried());
  if (!carried) print_error("stint: the run waits in the store: {}\n", kNoDaemonHere);
  co_return kExitDone;
}

RetryCommand::RetryCommand(CLI::App& app) : command_(app, "retry", "Submit an ended run again, as a new run") {
  command_.footer("Prints the new id. A run in doubt must be settled first: `stint resolve`.\n\n" +
                  std::string(kBatchHelp));
  command_.option("ID", id_, "Give the run's id, or a unique prefix").value("");
  filter_.add_to(command_, "Retry");
  command_.flag("--all", all_, "Retry all runs that failed, expired or were cancelled");
  command_.flag("--yes", yes_, "Do not ask before a retry by filter");
  command_.flag("--json", json_, "Print one JSON object");
}
bool RetryCommand::chosen() const { return command_.chosen(); }
int RetryCommand::run(const domain::System& system) {
  const bool by_filter = all_ || filter_.given();
  if (by_filter == !id_.empty()) {
    complain({Errc::invalid, by_filter ? "give an id or filters, not both" : "give an id, filters, or --all"});
    return kExitUsage;
  }
  if (by_filter) {
    return blocking_run_batch(
        system, {.agents = true},
        {.action = store::BatchAction::retry, .filter = filter_, .all = all_, .yes = yes_, .json = json_});
  }
  return run_on_fleet(system, {.agents = true}, [this](FleetAccess& access) { return retry(access, id_, json_); });
}

ResolveCommand::ResolveCommand(CLI::App& app) : command_(app, "resolve", "Settle a run in doubt") {
  command_.footer(
      "A run is in doubt when its effects are unknown: its work may or may not have been done. `stint inbox` lists "
      "them.");
  command_.option("ID", id_, "Give the run's id, or a unique prefix").value("").required();
  const Option done = command_.flag("--done", done_, "Count it as succeeded: the work was done");
  const Option rerun = command_.flag("--rerun", rerun_, "Run it again: the work was not done");
  const Option discard = command_.flag("--discard", discard_, "Count it as cancelled, either way");
  rerun.excludes(done);
  discard.excludes(done).excludes(rerun);
  command_.flag("--json", json_, "Print one JSON object");
}
bool ResolveCommand::chosen() const { return command_.chosen(); }
int ResolveCommand::run(const domain::System& system) {
  if (!done_ && !rerun_ && !discard_) {
    complain({Errc::invalid, "give one of --done, --rerun and --discard. `stint resolve --help` explains them"});
    return kExitUsage;
  }
  const domain::Resolution how = done_    ? domain::Resolution::done
                                 : rerun_ ? domain::Resolution::rerun
                                          : domain::Resolution::discard;
  return run_on_fleet(system, {}, [this, how](FleetAccess& access) { return resolve(access, id_, how, json_); });
}

AnswerCommand::AnswerCommand(CLI::App& app) : command_(app, "answer", "Let a parked run go on") {
  command_.footer(
      "Use it when the cause is settled: a login, a question. `stint inbox` lists such runs. If the run is parked on\n"
      "an account, this ends the account's pause, too: one run goes first, the others follow in order.");
  command_.option("ID", id_, "Give the run's id, or a unique prefix").value("").required();
  command_.flag("--json", json_, "Print one JSON object");
}
bool AnswerCommand::chosen() const { return command_.chosen(); }
int AnswerCommand::run(const domain::System& system) {
  return run_on_fleet(system, {}, [this](FleetAccess& access) { return answer_run(access, id_, json_); });
}

InboxCommand::InboxCommand(CLI::App& app)
    : command_(app, "inbox", "List runs that wait for a person: in doubt, or parked") {
  command_.footer("Prints the commands that settle each run.");
  command_.flag("--json", json_, "Print one JSON object");
}
bool InboxCommand::chosen() const { return command_.chosen(); }
int InboxCommand::run(const domain::System& system) {
  return run_on_fleet(system, {}, [this](FleetAccess& access) { return show_inbox(access, json_); });
}

}  // namespace stint::cli
