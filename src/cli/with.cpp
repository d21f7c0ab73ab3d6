#include "cli/with.hpp"

#include "agent/quantity.hpp"
#include "cli/environment.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "cli/reason_text.hpp"
#include "domain/run_id.hpp"
#include "driver/ward.hpp"
#include "limit/host_limits.hpp"
#include "limit/host_place.hpp"
#include "os/cgroup.hpp"
#include "os/process.hpp"
#include "os/resources.hpp"
#include "os/spawn.hpp"
#include "os/terminal.hpp"
#include "stint/asio.hpp"

#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;

constexpr int kNoPermit = 124, kFailed = 125, kCannotExecute = 126, kNotFound = 127, kBySignal = 128;

void say(const std::string& text) { write_error("stint: " + text + "\n"); }

int fail_with(int status, const Error& error) {
  say(printable(error.describe()));
  return status;
}

Result<limit::HostRequest> parse_request(const std::string& text, const limit::HostPlace& place, std::uint32_t weight) {
  const auto equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (project::counts_calls(place.settings, name)) {
    return fail(Errc::invalid, name +
                                   " counts calls within one process (reach = \"process\"); give it reach = \"host\" " +
                                   "in [limits] of stint.toml");
  }
  const auto configured = project::configured_capacity(place.settings, name);
  std::optional<std::uint32_t> asked;
  if (equals != std::string::npos) {
    auto number = agent::parse_integer(text.substr(equals + 1), 1, domain::kPermitsMax);
    if (!number) return fail(Errc::invalid, text + ": " + std::string(number.error().what()));
    asked = static_cast<std::uint32_t>(*number);
  }
  if (configured && asked && *configured != *asked) {
    return fail(Errc::invalid,
                fmt::format("{} asks for {}, but {} sets {}. Leave out '={}', or change the setting", text, *asked,
                            describe(place.settings.limits.find(name)->second.origin), *configured, *asked));
  }
  STINT_TRY(limit::HostLimit limit, place.homes.find(name, configured.value_or(asked.value_or(1))));
  limit.asked = asked && !configured;
  if (weight > limit::capacity_now(limit)) {
    return fail(Errc::invalid,
                fmt::format("{}: weight {} is more than its capacity, {}", name, weight, limit::capacity_now(limit)));
  }
  return limit::HostRequest{std::move(limit), weight};
}

}  // namespace

/// One call of `stint with`: waits for the permits, runs the command under a warden, forwards signals.
class WithRun {
 public:
  WithRun(Reactor& reactor, const domain::System& system, const WithOptions& options)
      : options_(options),
        system_(system),
        limits_(reactor, system, !options.no_inotify),
        wardens_(reactor),
        signals_(reactor.io()) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) listen_for(signal);
    who_.run = domain::new_run_id(system) + ":1";  // the fence of a single attempt
    who_.label = options.label.empty() ? options.command.front() : options.label;
    who_.marks = os::mark_parts(os::environment(os::kMarkVariable));
    if (!options.no_cgroup) who_.cgroup = os::cgroup_path(os::delegated_cgroup(), who_.run);
  }

  struct Times {
    Deadline deadline;
    Duration lease, grace;
  };
  Task<> run(std::vector<limit::HostRequest> requests, Times times) {
    auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(handle_signals());
      status_ = co_await carry(std::move(requests), times);
      scope.cancel();  // not signals_.cancel(): after a signal that just arrived the loop would wait for another
    };
    (void)co_await with_scope(std::ref(body));
  }
  [[nodiscard]] int status() const noexcept { return status_; }

 private:
  Task<int> carry(std::vector<limit::HostRequest> requests, Times times) {
    limit::HostLimits::Options wait;
    wait.deadline = times.deadline;
    wait.may_wait = !options_.no_wait;
    if (os::terminal_size(STDERR_FILENO)) wait.listener = [this](const domain::WaitReason* why) { show_wait(why); };
    std::optional<domain::WaitReason> refusal;
    wait.on_refusal = [&refusal](domain::WaitReason why) { refusal = std::move(why); };
    auto body = [&](Scope& scope) {
      waiting_ = &scope;
      return limits_.acquire(std::move(requests), who_, std::move(wait));
    };
    Result<limit::HostPermit> permit = co_await with_scope(std::ref(body));
    waiting_ = nullptr;
    if (last_signal_ != 0) co_return kBySignal + last_signal_;
    if (!permit) {
      if (!refusal) co_return fail_with(kFailed, permit.error());
      const std::string when = options_.no_wait ? "now" : "within " + options_.timeout;
      say("no permit " + when + ": " + limit_text(*refusal, system_.wall_now()));
      co_return kNoPermit;
    }
    co_return co_await attend(*permit, times);
  }

  Task<int> attend(limit::HostPermit& permit, const Times& times) {
    driver::WardOptions start;
    start.run = who_.run;
    start.cgroup = who_.cgroup;
    start.command = options_.command;
    start.environment = os::environment_with(
        {std::string(os::kMarkVariable) + "=" + os::mark_beneath(os::environment(os::kMarkVariable), who_.run)});
    start.slots = permit.entrust();
    start.lease = times.lease;
    start.grace = times.grace;
    start.copy = true;
    // Only from here on: the warden must know of a stop. A process that is stopped while it waits just loses its turn.
    listen_for(SIGTSTP);
    auto ward = driver::Ward::start(wardens_, start);
    if (!ward) co_return fail_with(kFailed, ward.error());
    ward_ = ward->get();
    const driver::WardenReport ended = co_await ward_->ended();
    const std::string left = ward_->left();
    ward_ = nullptr;
    if (!left.empty()) {  // the next process that takes the permit checks whether they are gone
      co_return fail_with(kFailed, Error(Errc::failed, "processes survived SIGKILL and keep their permits: " + left));
    }
    permit.release();
    co_return status_of(ended);
  }

  int status_of(const driver::WardenReport& ended) const {
    if (ended.start_errno != 0) {
      return fail_with(ended.start_errno == ENOENT ? kNotFound : kCannotExecute,
                       os::system_error(options_.command.front(), ended.start_errno));
    }
    if (ended.by_lease) {
      return fail_with(
          kFailed, Error(Errc::failed, "stint was stopped for longer than --lease, so the warden ended the command"));
    }
    if (ended.by_stint && last_signal_ == 0) {
      return fail_with(kFailed, Error(Errc::failed,
                                      "the command's warden was killed and the command ended; what the "
                                      "command did is unknown"));
    }
    if (ended.by_stint) return kBySignal + SIGKILL;
    const int status = ended.wait_status;
    return WIFSIGNALED(status) ? kBySignal + WTERMSIG(status) : WEXITSTATUS(status);
  }

  /// A signal that the caller ignores (nohup) stays ignored, also in the command: exec resets only handled signals.
  void listen_for(int signal) {
    if (!os::ignores(signal)) signals_.add(signal);
  }

  Task<> handle_signals() {
    while (true) {
      const auto [error, signal] = co_await signals_.async_wait(use_task);
      if (error) co_return;
      if (signal == SIGTSTP) {
        stop();
        continue;
      }
      const bool again = std::exchange(last_signal_, signal) != 0;
      if (ward_ != nullptr) {
        ward_->end(again ? SIGKILL : signal);
      } else if (waiting_ != nullptr) {
        waiting_->cancel();
      }
    }
  }

  /// Ctrl-Z. The command is in the terminal's foreground group too, so the kernel stops it.
  void stop() {
    if (ward_ != nullptr) ward_->pause();
    ::raise(SIGSTOP);
    if (ward_ != nullptr) ward_->beat();
  }

  void show_wait(const domain::WaitReason* why) {
    if (why != nullptr) say("waiting for " + limit_text(*why, system_.wall_now()));
  }

  const WithOptions& options_;
  const domain::System& system_;
  limit::HostLimits limits_;
  driver::Wardens wardens_;
  asio::signal_set signals_;
  limit::Claimant who_;
  Scope* waiting_ = nullptr;
  driver::Ward* ward_ = nullptr;
  int last_signal_ = 0;
  int status_ = kFailed;
};

WithCommand::WithCommand(CLI::App& app)
    : command_(app, "with", "Run any command under host limits: stint with gpu=2 -- ./train.sh") {
  command_.footer(
      "The capacity is that of [limits] in stint.toml, else N, else 1. Several limits are taken in a fixed order, so "
      "that\n"
      "no two commands wait for each other. The permits are free again when the command and everything it started are\n"
      "gone, also if stint is killed.\n"
      "Exit status: the command's own; 124 no permit in time; 125 stint failed; 126, 127 as env; 128+n by signal n.");
  command_.option("NAME", options_.limits, "Name one or more limits").required().value("[=N]…");
  command_.option("--weight", options_.weight, "Take this many permits of each limit")
      .whole(1U, domain::kPermitsMax)
      .shows_default();
  const Option timeout =
      command_.option("--timeout", options_.timeout, "Wait at most this long for a permit: 30s, 5m").value("DURATION");
  command_.flag("--no-wait", options_.no_wait, "Fail at once if no permit is free").excludes(timeout);
  command_.option("--label", options_.label, "Show this name as the holder; default: the command").value("TEXT");
  command_.option("--grace", options_.grace, "Wait this long between the first signal and SIGKILL")
      .value("DURATION")
      .shows_default();
  command_.option("--lease", options_.lease, "End the command if stint is frozen for this long")
      .value("DURATION")
      .shows_default();
  command_.flag("--no-cgroup", options_.no_cgroup, "Find processes by /proc only, without a cgroup");
  command_.flag("--no-inotify", options_.no_inotify, "Wait by polling, without inotify");
}

bool WithCommand::chosen() const { return command_.chosen(); }

int WithCommand::run(const domain::System& system, std::vector<std::string> command) {
  options_.command = std::move(command);
  if (options_.command.empty()) {
    return fail_with(kFailed, Error(Errc::invalid, "no command: stint with NAME[=N]… -- CMD…"));
  }
  const auto place = limit::blocking_find_host_place(blocking_read_environment());
  if (!place) return fail_with(kFailed, place.error());
  Reactor reactor;
  WithRun::Times times;
  for (const auto& [text, into] :
       {std::pair(&options_.lease, &times.lease), std::pair(&options_.grace, &times.grace)}) {
    const auto duration = agent::parse_duration(*text);
    if (!duration) return fail_with(kFailed, duration.error());
    *into = *duration;
  }
  if (!options_.timeout.empty()) {
    const auto timeout = agent::parse_duration(options_.timeout);
    if (!timeout) return fail_with(kFailed, timeout.error());
    times.deadline = Deadline::after(reactor.now(), *timeout);
  }
  std::vector<limit::HostRequest> requests;
  for (const std::string& text : options_.limits) {
    auto request = parse_request(text, *place, options_.weight);
    if (!request) return fail_with(kFailed, request.error());
    requests.push_back(std::move(*request));
  }
  os::become_subreaper();
  os::raise_descriptor_limit();  // one descriptor per slot; the command gets the original limit
  std::uint64_t slots = 0;
  for (const limit::HostRequest& request : requests) slots += limit::capacity_now(request.limit);
  if (const std::size_t most = os::descriptors_max(); slots > most) {
    return fail_with(kFailed,
                     Error(Errc::exhausted, fmt::format("{} slots need one file descriptor each, and this process "
                                                        "may have {}. Raise `ulimit -Hn`",
                                                        slots, most)));
  }
  WithRun run(reactor, system, options_);
  if (const Result<> ran = reactor.run(run.run(std::move(requests), times)); !ran)
    return fail_with(kFailed, ran.error());
  return run.status();
}

}  // namespace stint::cli
