#include "cli/run.hpp"

#include "cli/host_parts.hpp"
#include "cli/run_display.hpp"
#include "cli/run_wish.hpp"
#include "cli/store_place.hpp"
#include "engine/local_fleet.hpp"
#include "os/process.hpp"
#include "os/resources.hpp"
#include "os/terminal.hpp"
#include "stint/asio.hpp"
#include "store/memory_store.hpp"
#include "wire/run_line.hpp"
#include "wire/scribe.hpp"

#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <unistd.h>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;
using domain::RunState;

constexpr int kExitRefused = 3, kExitExpired = 4, kExitCancelled = 5, kExitInDoubt = 6, kExitBySignal = 128;
constexpr Duration kRefresh = 250ms;
constexpr std::uint32_t kEventsPage = 200;

int exit_status(const store::Run& run) {
  switch (run.state) {
    case RunState::succeeded: return kExitDone;
    case RunState::expired: return kExitExpired;
    case RunState::cancelled: return kExitCancelled;
    case RunState::in_doubt:
    case RunState::parked: return kExitInDoubt;
    case RunState::failed:
    case RunState::queued:
    case RunState::running: break;
  }
  return kExitFailed;
}

/// One call: the run, an engine that carries it and nothing else, the signals that end it, and what is shown of it.
class FollowedRun {
 public:
  FollowedRun(Reactor& reactor, const domain::Ambient& ambient, std::shared_ptr<const Reading> reading,
              store::Store& store, bool lasting_lease, const Surroundings& around, const RunOptions& options)
      : ambient_(ambient),
        options_(options),
        reading_(std::move(reading)),
        store_(store),
        reactor_(reactor),
        lasting_lease_(lasting_lease),
        display_(around, options.quiet || options.json),
        signals_(reactor.io(), SIGINT, SIGTERM, SIGHUP),
        permits_(reactor, ambient, [this] { return reading_; }),
        driver_(reactor, [this] { return reading_; }, {}) {}

  /// Fails if it could not be submitted.
  Task<Result<>> carry(engine::Submission wish) {
    make_fleet(nullptr);
    STINT_CO_CHECK(co_await define());
    wish.parent = co_await running_parent();
    const std::string agent = wish.agent.empty() ? std::string(engine::kPromptAgent) : wish.agent;
    std::vector<engine::Submission> wishes;
    wishes.push_back(std::move(wish));
    STINT_CO_TRY(auto submitted, co_await fleet_->submit(std::move(wishes)));
    if (!submitted.front()) co_return fail(std::move(submitted.front()).error());
    id_ = submitted.front()->id;
    make_engine(agent);
    auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(hear_signals());
      scope.spawn(serve());
      co_await follow();
      engine_->drain(Duration::zero());
      while (!served_) co_await sleep_for(1ms);
      scope.cancel();
    };
    (void)co_await with_scope(std::ref(body));
    co_return Result<>();
  }

  void show_end() {
    if (options_.json) {
      fmt::print("{}\n", wire::result_line(view_, refused_));
    } else {
      display_.show_result(view_);
    }
  }
  [[nodiscard]] int status() const {
    if (refused_) return kExitRefused;
    const bool by_signal = last_signal_ != 0 && last_signal_ != SIGINT && view_.run.state == RunState::cancelled;
    return by_signal ? kExitBySignal + last_signal_ : exit_status(view_.run);
  }

 private:
  void make_fleet(engine::Engine* engine) {
    engine::LocalFleet::Parts parts{
        reactor_, store_, scribe_, ambient_, [this]() -> const engine::Book& { return reading_->book; }, engine};
    fleet_ = std::make_unique<engine::LocalFleet>(std::move(parts), engine::LocalFleet::Options());
  }
  void make_engine(const std::string& agent) {
    engine::EngineOptions options;
    options.label = fmt::format("{}:{} run", os::host_name(), ::getpid());
    options.pool.workers = 1;
    options.only = id_;
    options.only_agent = agent;
    if (lasting_lease_) options.lease = Duration::max();
    engine_ =
        std::make_unique<engine::Engine>(engine::Engine::Parts{reactor_, store_, driver_, permits_, scribe_, ambient_},
                                         std::move(options), reading_->book);
    make_fleet(engine_.get());
  }
  Task<Result<>> define() {
    std::vector<store::AgentEntry> entries;
    for (const auto& [name, spec] : reading_->book) entries.push_back(spec.entry);
    STINT_CO_CHECK(co_await store_.define(std::move(entries)));
    STINT_CO_TRY(const auto known, co_await store_.limits());
    for (const auto& [name, capacity] : reading_->cluster_limits) {
      const auto limit = std::ranges::find(known, name, &store::LimitState::name);
      if (limit != known.end() && limit->capacity) continue;  // a daemon, or a person, has decided
      STINT_CO_CHECK(co_await store_.resize(name, capacity));
    }
    co_return Result<>();
  }

  /// The run that this process is a part of, if it is one of this store: its cancel reaches us.
  Task<std::string> running_parent() {
    const auto marks = os::mark_parts(os::environment(os::kMarkVariable));
    if (marks.empty()) co_return {};
    const std::string id = marks.back().substr(0, marks.back().find(':'));
    const auto parent = co_await store_.find(id);
    const bool runs = parent && *parent && (*parent)->id == id && (*parent)->state == RunState::running;
    co_return runs ? id : std::string();
  }

  Task<> serve() {
    const auto ended = co_await engine_->run();
    if (!ended) display_.say(ended.error().describe());
    served_ = true;
  }

  Task<> follow() {
    std::uint64_t seen = 0;
    while (true) {
      seen = co_await fleet_->changed(id_, seen, kRefresh);
      const auto view = co_await fleet_->find(id_);
      if (!view || !*view) continue;  // the store will answer again
      co_await tell_events();
      co_await tell_output();
      view_ = std::move(**view);
      if (engine::is_at_rest(view_.run)) break;
      if (view_.run.state == RunState::queued) co_await tell_wait();
      if (display_.live()) display_.refresh(view_, ambient_.wall_now());
    }
    co_await tell_events();
    co_await tell_output();
  }

  Task<> tell_events() {
    while (true) {
      const auto page = co_await store_.events(id_, after_, kEventsPage);
      if (!page) co_return;
      for (const store::Event& event : *page) {
        after_ = event.seq;
        if (event.cause == "claimed") ++attempt_;
        if (event.cause == "park" || event.cause == "hand_back" || event.cause == "lost") --attempt_;
        if (options_.json) {
          print_line(wire::event_line(event, attempt_));
        } else {
          display_.show(event, scribe_.read_note(event.data));
        }
      }
      if (page->size() < kEventsPage) co_return;
    }
  }

  Task<> tell_output() {
    const auto output = co_await store_.output(id_);
    if (!output || output->bytes == printed_) co_return;
    const std::string all = output->head + output->tail;
    const std::uint64_t kept = all.size(), fresh = output->bytes - printed_;
    const std::string text = all.substr(kept - std::min<std::uint64_t>(kept, fresh));
    printed_ = output->bytes;
    if (options_.json) {
      print_line(wire::text_line(id_, text));
    } else {
      display_.print(text);
    }
  }

  /// Why it does not begin.
  Task<> tell_wait() {
    std::string why;
    for (const auto& [agent, each] : engine_->waits()) why = each;
    if (why.empty()) {
      const auto reasons = co_await fleet_->why(id_);
      if (!reasons) co_return;
      for (const store::Why& each : reasons->reasons) {
        if (each.reason != "place" && each.reason != "delay") why = each.reason + ": " + each.detail;
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

  static void print_line(const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }

  Task<> hear_signals() {
    while (true) {
      const auto [error, signal] = co_await signals_.async_wait(use_task);
      if (error) co_return;
      const bool again = std::exchange(last_signal_, signal) != 0;
      if (again) {
        engine_->stop_here(id_, pool::Carried::Stop::cancelled, "cancelled by the keyboard");
        continue;
      }
      if (display_.live()) display_.say("ending it; once more to hurry");
      const auto reached = co_await store_.cancel(id_);
      (void)reached;
      engine_->stop_here(id_, pool::Carried::Stop::cancelled,
                         signal == SIGINT ? "cancelled by the keyboard" : "cancelled by a signal");
      engine_->changes().tell(id_);
    }
  }

  const domain::Ambient& ambient_;
  const RunOptions& options_;
  std::shared_ptr<const Reading> reading_;
  store::Store& store_;
  Reactor& reactor_;
  const bool lasting_lease_;
  RunDisplay display_;
  asio::signal_set signals_;
  wire::Scribe scribe_;
  HostPermits permits_;
  ProcessDriver driver_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<engine::LocalFleet> fleet_;
  std::string id_;
  engine::RunView view_;
  bool served_ = false, refused_ = false;
  int last_signal_ = 0;
  std::int64_t after_ = 0;
  std::uint32_t attempt_ = 0;
  std::uint64_t printed_ = 0;
  std::string told_wait_;
};

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

int RunCommand::run(const domain::Ambient& ambient) {
  const auto complain_as = [](const Error& error) {
    complain(error);
    if (error == Errc::full || error == Errc::closed) return kExitRefused;
    return error == Errc::invalid ? kExitUsage : kExitFailed;
  };
  const Surroundings around = blocking_look_around();
  ::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is an error of the write
  const auto settings = blocking_find_settings(around);
  if (!settings) return complain(settings.error());
  const bool memory = settings->settings.store == "memory";
  StorePlace place;
  if (!memory) {
    auto found = blocking_find_store(around);
    if (!found) return complain(found.error());
    place = std::move(*found);
  }
  const bool cluster = !memory && place.path.empty();
  auto reading = blocking_read_project(around, cluster);
  if (!reading) return complain(reading.error());
  const auto wish = wish_of(options_, **reading);
  if (!wish) return complain_as(wish.error());
  const auto trusted_now = blocking_ask_trust(wish->agent, **reading, around);
  if (!trusted_now) return complain_as(trusted_now.error());
  if (*trusted_now) {
    reading = blocking_read_project(around, cluster);
    if (!reading) return complain(reading.error());
  }
  Reactor reactor;
  std::unique_ptr<store::Store> store;
  std::optional<FollowedRun> followed;
  std::optional<Error> error;
  auto body = [&]() -> Task<> {
    if (memory) {
      store = std::make_unique<store::MemoryStore>(ambient);
    } else {
      auto opened = co_await open_store(reactor, place, ambient);
      if (!opened) {
        error = opened.error();
        co_return;
      }
      store = std::move(*opened);
    }
    os::become_subreaper();
    followed.emplace(reactor, ambient, *reading, *store, !memory && !cluster, around, options_);
    const auto done = co_await followed->carry(*wish);
    if (!done) error = done.error();
  };
  {
    RootScope scope(reactor);
    scope.spawn(body());
    reactor.run(scope);
  }
  if (error) return complain_as(*error);
  followed->show_end();
  return followed->status();
}

}  // namespace stint::cli
