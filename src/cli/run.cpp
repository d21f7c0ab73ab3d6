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
#include "domain/run_id.hpp"
#include "driver/process_driver.hpp"
#include "fleet/daemon_location.hpp"
#include "fleet/follow.hpp"
#include "fleet/local_fleet.hpp"
#include "fleet/remote_fleet.hpp"
#include "fleet/store_location.hpp"
#include "limit/host_permits.hpp"
#include "os/process.hpp"
#include "os/resources.hpp"
#include "os/terminal.hpp"
#include "project/attempt_planner.hpp"
#include "stint/asio.hpp"
#include "store/memory_store.hpp"
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

constexpr Duration kRefresh = 250ms;  // of the line at the bottom
constexpr Duration kLookEvery = 1s;   // what was used up is not told
constexpr std::uint32_t kEventsPage = 200;
constexpr Duration kPruneEvery = 1h;  // without a daemon; over all processes

/// Follows one run to its end: shows what happens to it, and ends it on a signal.
class Follower {
 public:
  Follower(Reactor& reactor, const domain::System& system, const Environment& environment, const RunOptions& options)
      : reactor_(reactor),
        system_(system),
        options_(options),
        out_(STDOUT_FILENO),
        display_(out_, environment, options.quiet || options.json),
        signals_(reactor) {}

  /// `carrier`: the engine of this process that carries it; null: another process does. Fails if that one does not
  /// answer any more, or was left to end it; or if the run was ended here and the store can't record it.
  Task<Result<>> follow(fleet::Fleet& fleet, std::string id, engine::Engine* carrier) {
    fleet_ = &fleet;
    id_ = std::move(id);
    carrier_ = carrier;
    Result<> done = fail(Errc::cancelled, "left to the daemon, which is ending it");
    auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(hear_signals(scope));
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
  /// What the run says, from who carries it here.
  void hear(const std::string& text) {
    reader_.saw(text.size());
    early_ += text;
    if (begun_) print_early();
  }
  /// Who carries it here is told when our own reader can't take more, and when it can again.
  void on_full(std::function<void(bool)> callback) { out_.on_full(std::move(callback)); }
  [[nodiscard]] int status() const {
    if (refused_) return kExitRefused;
    const bool by_signal = last_signal_ != 0 && last_signal_ != SIGINT && view_.run.state == RunState::cancelled;
    return by_signal ? kExitBySignal + last_signal_ : exit_status(view_.run);
  }

 private:
  /// All that was said, unless somebody hurries us: who reads it may have stopped to.
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
        // What this process carries it stays with: its engine bears a store that is away for longer.
        if (!looked && !outage_.bear(looked.error()) && carrier_ == nullptr) co_return looked;
        if (looked && engine::is_at_rest(view_.run)) co_return looked;
        if (carrier_ != nullptr && carrier_->cannot_begin()) {
          (void)co_await fleet_->cancel(id_);
          co_return fail(*carrier_->cannot_begin());
        }
        look_at = reactor_.now() + kLookEvery;
      }
      if (display_.live() && !view_.run.id.empty()) display_.refresh(view_, system_.wall_now());
    }
  }

  Task<Result<>> look() {
    // The run first: what it printed and what happened before its end is there when the end is seen.
    STINT_CO_TRY(std::optional<engine::RunView> view, co_await fleet_->find(id_));
    if (!view) co_return fail(Errc::invalid, "the run '" + id_ + "' is not there any more");
    STINT_CO_CHECK(co_await tell_events());
    STINT_CO_CHECK(co_await tell_output());
    view_ = std::move(*view);
    if (view_.run.state == RunState::queued) co_await tell_wait();
    co_return Result<>();
  }

  Task<Result<>> tell_events() {
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

  Task<Result<>> tell_output() {
    STINT_CO_TRY(const auto output, co_await fleet_->output(id_));
    for (const fleet::OutputReader::Piece& piece : reader_.take(output)) {
      if (piece.left_out > 0) {
        display_.warn(
            fmt::format("{} bytes of its output are left out here: it says more than the store keeps", piece.left_out));
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

  /// Why it does not begin.
  Task<> tell_wait() {
    std::string why;
    if (carrier_ != nullptr) {
      for (const auto& [agent, each] : carrier_->waits()) why = reason_text(each, system_.wall_now());
    }
    if (why.empty()) {
      const auto reasons = co_await fleet_->why(id_);
      if (!reasons) co_return;
      for (const domain::WaitReason& each : reasons->reasons) {
        using domain::WaitCause;
        const bool own = carrier_ != nullptr && each.cause == WaitCause::workers;  // its one worker is on its way
        if (own || each.cause == WaitCause::place || each.cause == WaitCause::delay) continue;
        why = reason_text(each, system_.wall_now());
        if (each.cause == WaitCause::paused) break;
      }
    }
    if (why.empty() || why == told_wait_) co_return;
    told_wait_ = why;
    if (options_.json) {
      print_line(wire::waiting_line(id_, why));
    } else {
      display_.show_wait(why);
    }
    if (!options_.no_wait) co_return;
    refused_ = true;
    (void)co_await fleet_->cancel(id_);
  }

  void print_line(const std::string& line) { out_.put(line + "\n"); }

  Task<> hear_signals(Scope& scope) {
    while (true) {
      const int signal = co_await signals_.next();
      const bool again = std::exchange(last_signal_, signal) != 0;
      if (again) hurried_.notify();
      if (!again) {
        const bool here = carrier_ != nullptr;
        if (display_.live()) display_.say(here ? "ending it; once more to hurry" : "ending it; once more to leave");
        scope.spawn(cancel(scope));
      } else if (carrier_ != nullptr) {
        carrier_->stop_here(id_, pool::Carried::Stop::cancelled, "cancelled by the keyboard");
      } else {
        scope.cancel();
      }
    }
  }

  Task<> cancel(Scope& scope) {
    const auto receipt = co_await fleet_->cancel(id_);
    if (receipt || carrier_ == nullptr) co_return;
    const pool::Carried* const carried = carrier_->worker().find(id_);
    if (carried != nullptr && !carried->is_work_over()) co_return;
    unrecorded_ = receipt.error();  // nothing of it is alive: the store is not waited for
    scope.cancel();
  }

  Reactor& reactor_;
  const domain::System& system_;
  const RunOptions& options_;
  Outlet out_;
  RunDisplay display_;
  fleet::Outage outage_{reactor_, [this](const std::string& text) { display_.say(printable(text)); }};
  EndSignals signals_;
  wire::RunCodec run_codec_;
  fleet::Fleet* fleet_ = nullptr;
  engine::Engine* carrier_ = nullptr;
  std::string id_;
  engine::RunView view_;
  bool refused_ = false;
  std::optional<Error> unrecorded_;
  int last_signal_ = 0;
  Notification hurried_;
  std::int64_t after_ = 0;
  std::uint32_t attempt_ = 0;
  fleet::OutputReader reader_;
  bool begun_ = false;  // the attempt that is under way, as was told
  std::string early_;   // heard before that was told
  std::string told_wait_;
};

/// Carries one run, and nothing else, with an engine of this process.
class OwnRun {
 public:
  OwnRun(Reactor& reactor, const domain::System& system, std::shared_ptr<const project::Snapshot> snapshot,
         store::Store& store, bool lasting_lease, driver::SecretMask mask, const std::string& program,
         Follower& follower)
      : reactor_(reactor),
        system_(system),
        snapshot_(std::move(snapshot)),
        store_(store),
        lasting_lease_(lasting_lease),
        permits_(reactor, system, [this] { return snapshot_; }),
        planner_([this] { return snapshot_; }, {.environment = {}, .program = program}),
        driver_(reactor,
                {.mask = std::move(mask), .on_output = [&follower](const std::string& text) { follower.hear(text); }}),
        follower_(follower) {
    follower.on_full([this](bool full) { driver_.hold(full); });
  }
  ~OwnRun() { follower_.on_full({}); }
  OwnRun(const OwnRun&) = delete;
  OwnRun& operator=(const OwnRun&) = delete;

  /// Fails if it could not be submitted.
  Task<Result<>> carry(engine::Submission submission) {
    const std::string id = domain::new_run_id(system_);
    const std::string agent = submission.agent.empty() ? std::string(domain::kPromptAgent) : submission.agent;
    const project::AgentSpec* const spec = project::find_spec(snapshot_->registry, agent);
    make_engine(spec == nullptr ? agent : project::name_in_store(*spec, submission.driver, submission.model), id);
    STINT_CO_CHECK(co_await engine_->enlist());
    submission.id = id;
    // Whoever has to take it up may serve another checkout; on another host there may be no such folder.
    if (lasting_lease_) submission.directory = snapshot_->checkout.project.root.string();
    submission.kept = true;  // a daemon that took it would wait for the permits of the run that we are a part of
    submission.parent = co_await running_parent(*fleet_);
    const auto submitted = co_await submit(std::move(submission));
    if (!submitted) {
      (void)co_await store_.leave(*engine_->owner());
      co_return submitted;
    }
    Result<> followed;
    auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(serve());
      followed = co_await follower_.follow(*fleet_, id, engine_.get());
      engine_->drain(Duration::zero());
    };
    (void)co_await with_scope(std::ref(body));
    co_return followed;
  }

 private:
  Task<Result<>> submit(engine::Submission submission) {
    STINT_CO_CHECK(co_await size_limits());
    std::vector<engine::Submission> submissions;
    submissions.push_back(std::move(submission));
    STINT_CO_TRY(auto submitted, co_await fleet_->submit(std::move(submissions)));
    if (!submitted.front()) co_return fail(std::move(submitted.front()).error());
    co_return Result<>();
  }
  void make_engine(const std::string& agent, const std::string& id) {
    engine::EngineOptions options;
    options.label = fmt::format("{}:{}{}", os::host_name(), ::getpid(), store::kOneRunLabel);
    options.pool.workers = 1;
    options.only = id;
    options.only_agent = agent;
    options.survivors_every = Duration::zero();
    options.retention = snapshot_->checkout.settings.retention;
    options.prune_every = kPruneEvery;
    options.cost_micros_per_day = snapshot_->checkout.settings.cost_micros_per_day;
    if (lasting_lease_) options.lease = Duration::max();
    engine_ = std::make_unique<engine::Engine>(engine::Engine::Parts{reactor_, store_, driver_, permits_, run_codec_,
                                                                     system_, nullptr, &driver_.survivors(), &planner_},
                                               std::move(options), snapshot_->registry);
    fleet::LocalFleet::Parts parts{reactor_,
                                   store_,
                                   run_codec_,
                                   system_,
                                   [this]() -> const project::AgentRegistry& { return snapshot_->registry; },
                                   engine_.get(),
                                   &driver_.survivors()};
    fleet_ = std::make_unique<fleet::LocalFleet>(std::move(parts), fleet::LocalFleet::Options());
  }
  /// Beside other processes only those without a size: a daemon has decided on the others.
  Task<Result<>> size_limits() {
    std::map<std::string, std::uint32_t> capacities = snapshot_->cluster_limits;
    STINT_CO_TRY(const auto workers, co_await store_.nodes());
    if (workers.size() <= 1)
      co_return co_await store_.configure(std::move(capacities), project::names_in_store(*snapshot_));
    STINT_CO_TRY(const auto known, co_await store_.limits());
    for (const store::LimitState& limit : known) {
      if (limit.capacity) capacities.erase(limit.name);
    }
    co_return co_await store_.configure(std::move(capacities), {});
  }

  Task<> serve() {
    const auto ended = co_await engine_->run();
    if (!ended) follower_.say(ended.error().describe());
  }

  Reactor& reactor_;
  const domain::System& system_;
  std::shared_ptr<const project::Snapshot> snapshot_;
  store::Store& store_;
  const bool lasting_lease_;
  wire::RunCodec run_codec_;
  limit::HostPermits permits_;
  project::AttemptPlanner planner_;
  driver::ProcessDriver driver_;
  Follower& follower_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<fleet::LocalFleet> fleet_;
};

/// A daemon carries it.
Task<Result<>> follow_daemon(Reactor& reactor, const domain::System& system, const Environment& environment,
                             const fleet::DaemonLocation& daemon, engine::Submission submission, Follower& follower) {
  fleet::RemoteFleet fleet(reactor, daemon, system, fleet::find_again_in(environment), say_outage);
  submission.parent = co_await running_parent(fleet);
  submission.parent_waits = !submission.parent.empty();
  std::vector<engine::Submission> submissions;
  submissions.push_back(std::move(submission));
  STINT_CO_TRY(auto submitted, co_await fleet.submit(std::move(submissions)));
  if (!submitted.front()) co_return fail(std::move(submitted.front()).error());
  co_return co_await follower.follow(fleet, submitted.front()->id, nullptr);
}

/// This process does.
Task<Result<>> carry_here(Reactor& reactor, const domain::System& system,
                          std::shared_ptr<const project::Snapshot> snapshot,
                          const std::optional<fleet::StoreLocation>& place, driver::SecretMask mask,
                          engine::Submission submission, Follower& follower) {
  std::unique_ptr<store::Store> store;
  if (place) {
    STINT_CO_TRY(store, co_await fleet::open_store(reactor, *place, system));
  } else {
    store = std::make_unique<store::MemoryStore>(system);
  }
  os::become_subreaper();
  const bool lasting_lease = place && !place->path.empty();
  OwnRun own(reactor, system, std::move(snapshot), *store, lasting_lease, std::move(mask), submission.program,
             follower);
  co_return co_await own.carry(std::move(submission));
}

/// Records what this command line names for the process that takes the run up if this one is lost: it starts no program
/// and enters no folder outside its checkout because a store says so. `lasting`: the run's folder is stored.
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
      "Values fill the agent's arguments in order; key=value names one; a key given twice is a list. `stint agents "
      "NAME`\n"
      "shows what an agent wants. The run is in the store like any other: `stint ls` and `stint show` know it. The "
      "first\n"
      "Ctrl-C ends it politely, a second one hurries; it is over when none of its processes is left.\n"
      "Exit status: 0 done · 1 failed · 2 usage · 3 refused · 4 budget or deadline · 5 cancelled · 6 in doubt · 128+n "
      "by "
      "signal.");
  command_.option("AGENT", options_.words, "The agent, then its arguments").value("[VALUE…] [KEY=VALUE…]");
  command_.option("-p,--prompt", options_.prompt, "A prompt instead of an agent").value("TEXT");
  command_.option("--driver", options_.driver, "claude, codex, gemini or command; default: the agent's")
      .one_of({"claude", "codex", "gemini", "command"});
  command_.option("--model", options_.model, "Passed to the driver").value("NAME");
  command_.option("--program", options_.program, "Instead of the CLI's usual name").value("PATH");
  command_.option("--session", options_.session, "Runs of one session go one after the other").value("KEY");
  command_.option("--time", options_.time, "Budget: from the first start, over waits and attempts").value("DURATION");
  command_.option("--attempts", options_.attempts, "Budget").whole(1, 100);
  command_.option("--tokens", options_.tokens, "Budget: 400k").value("COUNT");
  command_.option("--cost", options_.cost, "Budget: 2.50").value("MONEY");
  command_.option("--deadline", options_.deadline, "From now, with the wait for permits").value("DURATION");
  command_.flag("--no-wait", options_.no_wait, "Say no at once if there is no free permit");
  command_.flag("--json", options_.json, "One JSON object per event, the result last");
  command_.flag("-q,--quiet", options_.quiet, "Only the agent's words, and what went wrong");
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
  ::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is an error of the write
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
  // One of another checkout knows other files, and would work in another folder. Who names it means it.
  const bool elsewhere = *daemon && !(*daemon)->named && !(*daemon)->elsewhere.empty();
  // From within a run: its permits are known to be held by who asks only if that one carries the run itself. And a
  // program of our own choice is nothing to ask of others.
  const bool nested = !os::environment(os::kMarkVariable).empty();
  const bool here = !*daemon || elsewhere || ((nested || !options_.program.empty()) && !memory && !place.withheld);
  if (!nested) {  // an agent's word is good for this process alone
    const bool lasting = here && !memory && !cluster;
    if (const auto allowed = blocking_allow_rescue(*submission, **snapshot, lasting); !allowed)
      return complain(allowed.error());
  }
  auto mask = driver::SecretMask::of_environment(environment.variables);
  mask.add_password_of(settings->settings.store);
  Reactor reactor;
  Follower follower(reactor, system, environment, options_);
  auto body = [&]() -> Task<Result<>> {
    if (here) {
      co_return co_await carry_here(reactor, system, *snapshot, memory ? std::nullopt : std::optional(place), mask,
                                    *submission, follower);
    }
    co_return co_await follow_daemon(reactor, system, environment, **daemon, *submission, follower);
  };
  if (const Result<> done = reactor.run(body()); !done) return complain_as(done.error());
  return follower.status();
}

}  // namespace stint::cli
