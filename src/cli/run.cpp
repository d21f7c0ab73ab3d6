#include "cli/run.hpp"

#include "cli/host_homes.hpp"
#include "cli/run_display.hpp"
#include "cli/run_plan.hpp"
#include "cli/surroundings.hpp"
#include "engine/foreground.hpp"
#include "os/process.hpp"
#include "stint/asio.hpp"
#include "wire/run_event.hpp"

#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include <csignal>
#include <cstdio>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;

constexpr int kExitRefused = 3, kExitExpired = 4, kExitCancelled = 5, kExitInDoubt = 6, kExitBySignal = 128;
constexpr Duration kRefresh = 250ms;

int exit_status(const engine::RunResult& result) {
  if (result.refused) return kExitRefused;
  switch (result.end) {
    case domain::RunEnd::succeeded: return kExitDone;
    case domain::RunEnd::failed: return kExitFailed;
    case domain::RunEnd::expired: return kExitExpired;
    case domain::RunEnd::cancelled: return kExitCancelled;
    case domain::RunEnd::in_doubt: return kExitInDoubt;
  }
  return kExitFailed;
}

/// One call: the run, the signals that end it, and what is shown of it.
class Foreground {
 public:
  Foreground(Reactor& reactor, const domain::Ambient& ambient, engine::RunPlan plan, const Surroundings& around,
             const RunOptions& options)
      : id_(plan.id),
        json_(options.json),
        display_(around, options.quiet || options.json),
        signals_(reactor.io(), SIGINT, SIGTERM, SIGHUP),
        limits_(reactor, ambient),
        wardens_(reactor),
        run_(reactor, ambient, limits_, wardens_, std::move(plan),
             [this](const engine::RunEvent& event) { hear(event); }) {}

  Task<> carry() {
    auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(hear_signals());
      if (display_.live()) scope.spawn(keep_fresh());
      result_ = co_await run_.run();
      scope.cancel();
    };
    (void)co_await with_scope(std::ref(body));
    if (json_) {
      fmt::print("{}\n", wire::run_result_to_json(id_, result_));
    } else {
      display_.show_result(result_);
    }
  }
  [[nodiscard]] int status() const {
    const bool by_signal = last_signal_ != 0 && last_signal_ != SIGINT && result_.end == domain::RunEnd::cancelled;
    return by_signal ? kExitBySignal + last_signal_ : exit_status(result_);
  }

 private:
  void hear(const engine::RunEvent& event) {
    if (!json_) return display_.show(event);
    fmt::print("{}\n", wire::run_event_to_json(id_, event, run_.elapsed()));
    std::fflush(stdout);
  }

  Task<> hear_signals() {
    while (true) {
      const auto [error, signal] = co_await signals_.async_wait(use_task);
      if (error) co_return;
      const bool again = std::exchange(last_signal_, signal) != 0;
      if (!again && display_.live()) fmt::print(stderr, "\r\033[Kstint: ending it; once more to hurry\n");
      run_.cancel(signal == SIGINT ? "cancelled by the keyboard" : "cancelled by a signal");
    }
  }

  Task<> keep_fresh() {
    while (true) {
      display_.refresh(run_);
      co_await sleep_for(kRefresh);
    }
  }

  const std::string id_;
  const bool json_;
  RunDisplay display_;
  asio::signal_set signals_;
  limit::HostLimits limits_;
  driver::Wardens wardens_;
  engine::ForegroundRun run_;
  engine::RunResult result_;
  int last_signal_ = 0;
};

}  // namespace

RunCommand::RunCommand(CLI::App& app)
    : command_(app, "run", "Run an agent in the foreground: stint run review 42, stint run -p TEXT") {
  command_.footer(
      "Values fill the agent's arguments in order; key=value names one; a key given twice is a list. `stint agents "
      "NAME`\n"
      "shows what an agent wants. The first Ctrl-C ends the run politely, a second one hurries; it is over when none "
      "of\n"
      "its processes is left.\n"
      "Exit status: 0 done · 1 failed · 2 usage · 3 refused · 4 budget or deadline · 5 cancelled · 6 in doubt · 128+n "
      "by "
      "signal.");
  command_.option("AGENT", options_.words, "The agent, then its arguments").value("[VALUE…] [KEY=VALUE…]");
  command_.option("-p,--prompt", options_.prompt, "A prompt instead of an agent").value("TEXT");
  command_.option("--driver", options_.driver, "claude, codex, gemini or command; default: the agent's")
      .one_of({"claude", "codex", "gemini", "command"});
  command_.option("--model", options_.model, "Passed to the driver").value("NAME");
  command_.option("--program", options_.program, "Instead of the CLI's usual name").value("PATH");
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
  const Surroundings around = blocking_look_around();
  const auto place = blocking_find_host_place(around);
  if (!place) return complain(place.error());
  ::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is an error of the write
  Reactor reactor;
  auto plan = blocking_plan_run(options_, *place, around, ambient, reactor.now());
  if (!plan) {
    complain(plan.error());
    return plan.error() == Errc::invalid ? kExitUsage : kExitFailed;
  }
  os::become_subreaper();
  Foreground foreground(reactor, ambient, std::move(*plan), around, options_);
  RootScope scope(reactor);
  scope.spawn(foreground.carry());
  reactor.run(scope);
  return foreground.status();
}

}  // namespace stint::cli
