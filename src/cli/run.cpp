#include "cli/run.hpp"

#include "agent/trust.hpp"
#include "cli/end_signals.hpp"
#include "cli/exit_status.hpp"
#include "cli/fleet_place.hpp"
#include "cli/fleet_text.hpp"
#include "cli/printable.hpp"
#include "cli/reason_text.hpp"
#include "cli/run_display.hpp"
#include "cli/run_submission.hpp"
#include "engine/views.hpp"
#include "fleet/daemon_location.hpp"
#include "fleet/follow.hpp"
#include "fleet/one_run.hpp"
#include "fleet/parent_run.hpp"
#include "fleet/remote_fleet.hpp"
#include "fleet/store_location.hpp"
#include "os/process.hpp"
#include "os/terminal.hpp"
#include "stint/asio.hpp"
#include "wire/run_codec.hpp"
#include "wire/run_line.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <unistd.h>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;
using domain::RunState;

constexpr Duration kRefresh = 250ms;  // of the status line at the bottom
constexpr Duration kUsageEvery = 1s;  // tokens and cost change without an event
constexpr std::uint32_t kEventsPage = 200;

/// Follows one run to its end: prints its output and events, and cancels it on a signal.
class RunWatcher {
 public:
  RunWatcher(Reactor& reactor, const domain::System& system, const Environment& environment, const RunOptions& options)
      : reactor_(reactor),
        system_(system),
        options_(options),
        out_(STDOUT_FILENO),
        display_(out_, environment, options.quiet || options.json),
        signals_(reactor) {}

  /// `own`: this process carries the run; null: a daemon carries it. Fails if the daemon stops answering, if a second
  /// signal leaves the run to the daemon, or if the run ended here and the store can't record it.
  Task<Result<>> follow(fleet::Fleet& fleet, std::string id, fleet::OneRun* own) {
    fleet_ = &fleet;
    id_ = std::move(id);
    own_ = own;
    Result<> done = fail(Errc::cancelled, "the daemon is still ending the run; `stint show` has its state");
    auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(handle_signals(scope));
      scope.spawn(out_.run());
      done = co_await watch();
      co_await written();
      if (done) show_end();
      co_await written();
      scope.cancel();
    };
    (void)co_await with_scope(std::ref(body));
    if (unrecorded_) done = fail(*unrecorded_);
    co_return done;
  }
  void say(const std::string& text) { display_.say(text); }
  /// Output of a run that this process carries, before the store has it.
  void take_output(const std::string& text) {
    reader_.saw(text.size());
    early_ += text;
    if (begun_) print_early();
  }
  /// Back-pressure: called with true when stdout's reader is too slow, with false when there is room again.
  void on_full(std::function<void(bool)> callback) { out_.on_full(std::move(callback)); }
  [[nodiscard]] int status() const {
    if (refused_) return kExitRefused;
    const bool by_signal = last_signal_ != 0 && last_signal_ != SIGINT && view_.run.state == RunState::cancelled;
    return by_signal ? kExitBySignal + last_signal_ : exit_status(view_.run);
  }

 private:
  /// Waits until stdout has taken everything. A second signal ends the wait: the reader may have stopped.
  Task<> written() { co_await race(out_.drained(), hurried_.wait(0)); }

  void show_end() {
    if (options_.json) {
      print_line(wire::result_line(view_, refused_));
    } else {
      display_.show_result(view_);
    }
  }

  Task<Result<>> watch() {
    std::uint64_t seen = 0;
    TimePoint look_at{};
    while (true) {
      const std::uint64_t now = co_await fleet_->changed(id_, seen, kRefresh);
      if (std::exchange(seen, now) != now || reactor_.now() >= look_at) {
        const Result<> looked = co_await look();
        if (looked) outage_.end();
        // A run that this process carries is never given up here: its engine tolerates longer outages of the store.
        if (!looked && !outage_.tolerate(looked.error()) && own_ == nullptr) co_return looked;
        if (looked && engine::is_at_rest(view_.run)) co_return looked;
        if (own_ != nullptr && own_->cannot_begin()) {
          (void)co_await fleet_->cancel(id_);
          co_return fail(*own_->cannot_begin());
        }
        look_at = reactor_.now() + kUsageEvery;
      }
      if (display_.live() && !view_.run.id.empty()) display_.refresh(view_, system_.wall_now());
    }
  }

  Task<Result<>> look() {
    // Read the run first: then everything that it printed before its end is in the store when we see the end.
    STINT_CO_TRY(std::optional<engine::RunView> view, co_await fleet_->find(id_));
    if (!view) co_return fail(Errc::invalid, "run '" + id_ + "' is no longer in the store");
    STINT_CO_CHECK(co_await show_events());
    STINT_CO_CHECK(co_await show_output());
    view_ = std::move(*view);
    if (view_.run.state == RunState::queued) co_await show_wait();
    co_return Result<>();
  }

  Task<Result<>> show_events() {
    while (true) {
      STINT_CO_TRY(const auto page, co_await fleet_->events(id_, after_, kEventsPage));
      for (const store::Event& event : page) {
        after_ = event.seq;
        if (event.cause == "claimed") ++attempt_;
        if (event.state) begun_ = *event.state == RunState::running;
        if (event.cause == "park" || event.cause == "hand_back" || event.cause == "lost") --attempt_;
        if (options_.json) {
          print_line(wire::event_line(event, attempt_));
        } else {
          display_.show(event, run_codec_.read_note(event.data));
        }
        if (begun_) print_early();
      }
      if (page.size() < kEventsPage) co_return Result<>();
    }
  }

  Task<Result<>> show_output() {
    STINT_CO_TRY(const auto output, co_await fleet_->output(id_));
    for (const fleet::OutputReader::Piece& piece : reader_.take(output)) {
      if (piece.left_out > 0) {
        display_.warn(
            fmt::format("{} bytes of output left out: the run printed more than the store keeps", piece.left_out));
      }
      print(piece.text);
    }
    co_return Result<>();
  }

  void print_early() {
    if (!early_.empty()) print(std::exchange(early_, {}));
  }

  void print(const std::string& text) {
    if (options_.json) {
      print_line(wire::text_line(id_, text));
    } else {
      display_.print(text);
    }
  }

  /// Prints why the run does not begin, when the reason changes.
  Task<> show_wait() {
    std::optional<domain::WaitReason> reason = own_ != nullptr ? own_->waits_for() : std::nullopt;
    if (!reason) reason = co_await find_wait();
    if (!reason) co_return;
    const std::string why = reason_text(*reason, system_.wall_now());
    if (why == shown_wait_) co_return;
    shown_wait_ = why;
    if (options_.json) {
      print_line(wire::waiting_line(id_, *reason, why));
    } else {
      display_.show_wait(why);
    }
    if (!options_.no_wait) co_return;
    refused_ = true;
    (void)co_await fleet_->cancel(id_);
  }

  /// The reason that the store gives, but for those that pass by themselves.
  Task<std::optional<domain::WaitReason>> find_wait() {
    using domain::WaitCause;
    std::optional<domain::WaitReason> found;
    const auto why = co_await fleet_->why(id_);
    if (!why) co_return found;
    for (const domain::WaitReason& each : why->reasons) {
      const bool own = own_ != nullptr && each.cause == WaitCause::workers;  // its only worker is starting
      if (own || each.cause == WaitCause::place || each.cause == WaitCause::delay) continue;
      found = each;
      if (each.cause == WaitCause::paused) break;
    }
    co_return found;
  }

  void print_line(const std::string& line) { out_.put(line + "\n"); }

  Task<> handle_signals(Scope& scope) {
    while (true) {
      const int signal = co_await signals_.next();
      const bool again = std::exchange(last_signal_, signal) != 0;
      if (again) hurried_.notify();
      if (!again) {
        const bool here = own_ != nullptr;
        if (display_.live())
          display_.say(here ? "cancelling; Ctrl-C again kills it at once"
                            : "cancelling; Ctrl-C again leaves it to the daemon");
        scope.spawn(cancel(scope));
      } else if (own_ != nullptr) {
        own_->stop("cancelled by the keyboard");
      } else {
        scope.cancel();
      }
    }
  }

  Task<> cancel(Scope& scope) {
    const auto receipt = co_await fleet_->cancel(id_);
    if (receipt || own_ == nullptr || !own_->is_work_over()) co_return;
    unrecorded_ = receipt.error();  // no process of the run is alive: do not wait for the store
    scope.cancel();
  }

  Reactor& reactor_;
  const domain::System& system_;
  const RunOptions& options_;
  OutputBuffer out_;
  RunDisplay display_;
  fleet::Outage outage_{reactor_, [this](const std::string& text) { display_.say(printable(text)); }};
  EndSignals signals_;
  wire::RunCodec run_codec_;
  fleet::Fleet* fleet_ = nullptr;
  fleet::OneRun* own_ = nullptr;
  std::string id_;
  engine::RunView view_;
  bool refused_ = false;
  std::optional<Error> unrecorded_;
  int last_signal_ = 0;
  Notification hurried_;
  std::int64_t after_ = 0;
  std::uint32_t attempt_ = 0;
  fleet::OutputReader reader_;
  bool begun_ = false;  // the events printed so far include the start of the attempt under way
  std::string early_;   // output that came before that event
  std::string shown_wait_;
};

/// Submits the run to a daemon and follows it there.
Task<Result<>> follow_daemon(Reactor& reactor, const domain::System& system, const Environment& environment,
                             const fleet::DaemonLocation& daemon, engine::Submission submission, RunWatcher& watcher) {
  fleet::RemoteFleet fleet(reactor, daemon, system, environment, print_outage);
  submission.parent = co_await fleet::running_parent(fleet);
  submission.parent_waits = !submission.parent.empty();
  std::vector<engine::Submission> submissions;
  submissions.push_back(std::move(submission));
  STINT_CO_TRY(auto submitted, co_await fleet.submit(std::move(submissions)));
  if (!submitted.front()) co_return fail(std::move(submitted.front()).error());
  co_return co_await watcher.follow(fleet, submitted.front()->id, nullptr);
}

/// Carries the run in this process.
Task<Result<>> carry_here(Reactor& reactor, const domain::System& system,
                          std::shared_ptr<const project::Snapshot> snapshot,
                          const std::optional<fleet::StoreLocation>& place, driver::SecretMask mask,
                          engine::Submission submission, RunWatcher& watcher) {
  STINT_CO_TRY(const std::unique_ptr<store::Store> store, co_await fleet::open_store(reactor, place, system));
  os::become_subreaper();
  fleet::OneRun::Options options;
  options.lasting_lease = place && !place->path.empty();
  options.mask = std::move(mask);
  options.program = submission.program;
  options.on_output = [&watcher](const std::string& text) { watcher.take_output(text); };
  options.on_failure = [&watcher](const Error& error) { watcher.say(error.describe()); };
  fleet::OneRun own({reactor, system, *store, std::move(snapshot)}, std::move(options));
  watcher.on_full([&own](bool full) { own.hold(full); });
  const auto follow = [&](fleet::Fleet& fleet, std::string id) -> Task<Result<>> {
    co_return co_await watcher.follow(fleet, std::move(id), &own);
  };
  Result<> done = co_await own.carry(std::move(submission), std::ref(follow));
  watcher.on_full({});
  co_return done;
}

/// Records the program and folder that this command line names, for the process that rescues the run if this one dies.
/// A rescuer starts no program and enters no folder outside its checkout merely because the store names it.
/// `lasting`: the run's folder is stored.
Result<> blocking_allow_rescue(const engine::Submission& submission, const project::Snapshot& snapshot, bool lasting) {
  if (!submission.program.empty()) STINT_CHECK(agent::blocking_allow_program(snapshot.state, submission.program));
  const agent::Project& project = snapshot.checkout.project;
  if (!lasting || project.is_repository()) return {};  // worktrees of a repository know each other
  return agent::blocking_allow_folder(snapshot.state, project.root);
}

}  // namespace

RunCommand::RunCommand(CLI::App& app)
    : command_(app, "run", "Run an agent in the foreground: stint run review 42, stint run -p TEXT") {
  command_.footer(
      "Values fill the agent's arguments in order; key=value names one; a key given twice makes a list.\n"
      "`stint agents NAME` shows an agent's arguments. The run is stored like any other: see `stint ls`, `stint "
      "show`.\n"
      "Ctrl-C cancels the run, a second one kills it at once; the command returns when no process of it is left.\n"
      "Exit status: 0 done · 1 failed · 2 usage · 3 refused · 4 budget or deadline · 5 cancelled · 6 in doubt ·\n"
      "128+n by signal n.");
  command_.option("AGENT", options_.words, "Name the agent, then its arguments").value("[VALUE…] [KEY=VALUE…]");
  command_.option("-p,--prompt", options_.prompt, "Run a prompt instead of an agent").value("TEXT");
  command_.driver_option(options_.driver);
  command_.option("--model", options_.model, "Choose the model; passed to the driver").value("NAME");
  command_.option("--program", options_.program, "Start this program instead of the driver's CLI").value("PATH");
  command_.option("--session", options_.session, "Run after earlier runs of this session").value("KEY");
  options_.budget.declare(command_);
  command_.option("--deadline", options_.deadline, "End the run this long after now, its wait for permits included")
      .value("DURATION");
  command_.flag("--no-wait", options_.no_wait, "Fail at once if no permit is free");
  command_.flag("--json", options_.json, "Print one JSON object per event, the result last");
  command_.flag("-q,--quiet", options_.quiet, "Print only the agent's output and errors");
}

bool RunCommand::chosen() const { return command_.chosen(); }

int RunCommand::run(const domain::System& system) {
  const auto complain_as = [](const Error& error) {
    complain(error);
    if (error == Errc::full || error == Errc::closed) return kExitRefused;
    if (error == Errc::cancelled) return kExitCancelled;
    return error == Errc::invalid ? kExitUsage : kExitFailed;
  };
  const Environment environment = blocking_read_environment();
  ::signal(SIGPIPE, SIG_IGN);  // a closed reader becomes an error of the write
  const auto settings = blocking_find_settings_or_ask(environment);
  if (!settings) return complain(settings.error());
  const bool memory = settings->settings.store == "memory";
  fleet::StoreLocation place;
  if (!memory) {
    auto found = fleet::blocking_find_store(environment);
    if (!found) return complain(found.error());
    place = std::move(*found);
  }
  const bool cluster = !memory && place.path.empty();
  auto snapshot = fleet::blocking_read_project(environment, cluster);
  if (!snapshot) return complain(snapshot.error());
  const auto submission = submission_of(options_, **snapshot);
  if (!submission) return complain_as(submission.error());
  print_problems(project::problems_of(submission->agent, (*snapshot)->catalogue, (*snapshot)->checkout.warnings),
                 environment);
  const auto trusted_now = blocking_ask_trust(*submission, **snapshot, environment);
  if (!trusted_now) return complain_as(trusted_now.error());
  if (*trusted_now) {
    snapshot = fleet::blocking_read_project(environment, cluster);
    if (!snapshot) return complain(snapshot.error());
  }
  const auto daemon = fleet::blocking_find_daemon(environment);
  if (!daemon) return complain(daemon.error());
  // A daemon of another checkout reads other files and works in another folder: used only if STINT_URL names it.
  const bool elsewhere = *daemon && !(*daemon)->named && !(*daemon)->elsewhere.empty();
  // Inside a run: a nested run shares the parent's permits only if this process carries it. And a daemon starts no
  // program that a caller chose (--program).
  const bool nested = !os::environment(os::kMarkVariable).empty();
  const bool here = !*daemon || elsewhere || ((nested || !options_.program.empty()) && !memory && !place.withheld);
  if (!nested) {  // an agent may name a program for this process only, not for a rescuer
    const bool lasting = here && !memory && !cluster;
    if (const auto allowed = blocking_allow_rescue(*submission, **snapshot, lasting); !allowed)
      return complain(allowed.error());
  }
  auto mask = driver::SecretMask::of_environment(environment.variables);
  mask.add_password_of(settings->settings.store);
  Reactor reactor;
  RunWatcher watcher(reactor, system, environment, options_);
  auto body = [&]() -> Task<Result<>> {
    if (here) {
      co_return co_await carry_here(reactor, system, *snapshot, memory ? std::nullopt : std::optional(place), mask,
                                    *submission, watcher);
    }
    co_return co_await follow_daemon(reactor, system, environment, **daemon, *submission, watcher);
  };
  if (const Result<> done = reactor.run(body()); !done) return complain_as(done.error());
  return watcher.status();
}

}  // namespace stint::cli
