#include "cli/cancel.hpp"

#include "cli/batch.hpp"
#include "cli/exit_status.hpp"
#include "cli/fleet_place.hpp"
#include "cli/fleet_text.hpp"
#include "cli/print.hpp"
#include "engine/views.hpp"
#include "stint/scope.hpp"
#include "wire/fleet.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace stint::cli {
namespace {

/// Cancels several runs at once: each takes as long as its processes take to end.
class Canceller {
 public:
  static constexpr std::size_t kAtOnce = 16;

  Canceller(fleet::Fleet& fleet, const std::vector<std::string>& ids, bool json)
      : fleet_(fleet), ids_(ids), json_(json) {}

  Task<int> run() {
    auto body = [&](Scope& scope) -> Task<> {
      for (std::size_t i = 0; i < std::min(kAtOnce, ids_.size()); ++i) scope.spawn(cancel_next());
      co_return;
    };
    (void)co_await with_scope(std::ref(body));
    co_return exit_;
  }

 private:
  Task<> cancel_next() {
    while (next_ < ids_.size()) {
      const std::string& id = ids_[next_++];
      tell(co_await fleet_.cancel(id));
    }
  }
  void tell(const Result<engine::Receipt>& receipt) {
    if (!receipt) {
      complain(receipt.error());
      note(receipt.error() == Errc::conflict ? kExitInDoubt : exit_status(receipt.error()));
      return;
    }
    print_out("{}\n", json_ ? wire::to_json(*receipt) : receipt_text(*receipt));
    flush_out();
    if (receipt->run.run.state == domain::RunState::in_doubt) note(kExitInDoubt);
  }
  void note(int exit) noexcept {
    if (exit_ == kExitDone) exit_ = exit;
  }

  fleet::Fleet& fleet_;
  const std::vector<std::string>& ids_;
  const bool json_;
  std::size_t next_ = 0;
  int exit_ = kExitDone;
};

Task<Result<int>> cancel(FleetAccess& access, const std::vector<std::string>& ids, bool json) {
  Canceller canceller(access.fleet, ids, json);
  co_return co_await canceller.run();
}

}  // namespace

CancelCommand::CancelCommand(CLI::App& app)
    : command_(app, "cancel", "Cancel runs; returns when none of their processes is left") {
  command_.footer(
      "Also cancels the runs that they submitted. Prints a receipt: processes ended, and how long it took. A run that\n"
      "has ended stays as it is. Exit status: 0 nothing is left · 1 no such run · 6 a run is in doubt.\n\n" +
      std::string(kBatchHelp));
  command_.option("ID", ids_, "Give the ids of runs, or unique prefixes").value("…");
  filter_.add_to(command_, "Cancel");
  command_.flag("--all", all_, "Cancel all runs that have not ended");
  command_.flag("--yes", yes_, "Do not ask before a cancel by filter");
  command_.flag("--json", json_, "Print one JSON object per run, or one of a cancel by filter");
}

bool CancelCommand::chosen() const { return command_.chosen(); }

int CancelCommand::run(const domain::System& system) {
  const bool by_filter = all_ || filter_.given();
  if (by_filter == !ids_.empty()) {
    complain({Errc::invalid, by_filter ? "give ids or filters, not both" : "give ids, filters, or --all"});
    return kExitUsage;
  }
  if (by_filter) {
    return blocking_run_batch(
        system, {}, {.action = store::BatchAction::cancel, .filter = filter_, .all = all_, .yes = yes_, .json = json_});
  }
  return run_on_fleet(system, {}, [this](FleetAccess& access) { return cancel(access, ids_, json_); });
}

}  // namespace stint::cli
