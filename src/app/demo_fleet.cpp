#include "app/demo_fleet.hpp"

#include "agent/trust.hpp"
#include "app/daemon.hpp"
#include "cli/open.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "cli/run_display.hpp"
#include "engine/views.hpp"
#include "os/process.hpp"
#include "os/resources.hpp"
#include "os/terminal.hpp"
#include "provider/ask.hpp"
#include "provider/server.hpp"
#include "store/memory_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <unistd.h>

namespace stint::app {
namespace {

using namespace std::chrono_literals;
using cli::Line;
using cli::Style;
using domain::RunState;

constexpr std::uint32_t kRunsDefault = 8;  // without a terminal the demo must end by itself
constexpr std::uint32_t kRunsMax = 10'000;
constexpr std::size_t kShown = 12;
constexpr int kColumns = 80;  // of a terminal that does not say
constexpr std::uint32_t kWriters = 2;
constexpr std::uint32_t kCancelled = 3;  // the third run is cancelled in the middle of its output
constexpr Duration kCancelAfter = 2s, kFrame = 200ms, kArrival = 700ms;

/// A temporary folder, removed by the destructor.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "stint-demo-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

void write_agent(const std::filesystem::path& root, const std::string& name, const std::string& port,
                 const std::string& more, const std::string& tokens) {
  std::filesystem::create_directories(root / ".stint" / "agents");
  std::ofstream out(root / ".stint" / "agents" / (name + ".md"));
  out << "---\ndescription: Asks the simulated provider\nargs:\n  - {name: what, required: true}\n"
      << "driver: command\non_crash: rerun\n"
      << more << "title: \"" << name << " {{what}}\"\n"
      << "command: [/proc/self/exe, " << provider::kAskArgument << ", 127.0.0.1, \"" << port
      << "\", \"@provider: tokens=" << tokens << " rate=14/s\\nWhat do you think of {{what}}?\"]\n---\n";
}

/// Writes the demo's agents into a folder and trusts it.
Result<std::shared_ptr<const project::Snapshot>> blocking_make_project(const cli::Environment& environment,
                                                                       const std::string& provider) {
  const std::string port = provider.substr(provider.rfind(':') + 1);
  write_agent(environment.folder, "writer", port, fmt::format("max_concurrency: {}\n", kWriters), "50");
  write_agent(environment.folder, "reader", port, "", "20");
  STINT_TRY(const agent::UserPlaces places, agent::user_places(environment.variables));
  STINT_TRY(const agent::Project project, agent::blocking_find_project(environment.folder));
  STINT_CHECK(agent::blocking_trust(places.state, project));
  return fleet::blocking_read_project(environment, false);
}

/// Submits runs one after the other, cancels one, and shows what the fleet reports.
class Show {
 public:
  Show(Daemon& daemon, const domain::System& system, std::uint32_t runs, bool live, bool colour)
      : daemon_(daemon), system_(system), runs_(runs), live_(live), colour_(colour) {}

  Task<> run() {
    auto body = [this](Scope& scope) -> Task<> {
      scope.spawn(submit());
      scope.spawn(cancel_one());
      co_await watch();
      scope.cancel();
    };
    (void)co_await with_scope(std::ref(body));
    daemon_.engine().drain(2s);
  }
  [[nodiscard]] std::uint32_t count(RunState state) const {
    return static_cast<std::uint32_t>(std::ranges::count(states_, state, [](const auto& each) { return each.second; }));
  }
  [[nodiscard]] std::uint32_t most_writers() const noexcept { return most_writers_; }
  /// Why a submission was refused; none: it was not.
  [[nodiscard]] const std::optional<Error>& refused() const noexcept { return refused_; }

 private:
  Task<> submit() {
    co_await daemon_.ready();
    constexpr std::array kThings = {"permits", "queues", "leases", "fences", "budgets", "drains", "tapes"};
    for (std::uint32_t submitted = 0; submitted < runs_;) {
      engine::Submission submission;
      submission.agent = submitted % 3 == 1 ? "reader" : "writer";
      submission.args["what"] = {fmt::format("{} {}", kThings[submitted % kThings.size()], submitted + 1)};
      std::vector<engine::Submission> submissions;
      submissions.push_back(std::move(submission));
      auto answers = co_await daemon_.fleet().submit(std::move(submissions));
      const Result<engine::Submitted> answer = answers ? std::move(answers->front()) : fail(std::move(answers).error());
      if (!answer && answer.error() != Errc::full) {
        // A daemon that drains refuses all: that is the end of the demo, not a failure of it.
        if (daemon_.engine().phase() == engine::Phase::serving) refused_ = answer.error();
        co_return;
      }
      if (answer) {
        ids_.push_back(answer->id);
        ++submitted;
      }
      co_await sleep_for(live_ ? kArrival : 100ms);
    }
  }

  Task<> cancel_one() {
    while (ids_.size() < kCancelled) co_await sleep_for(kFrame);
    const std::string id = ids_[kCancelled - 1];
    while (states_[id] != RunState::running) co_await sleep_for(kFrame);
    co_await sleep_for(kCancelAfter);
    (void)co_await daemon_.fleet().cancel(id);
  }

  Task<> watch() {
    while (true) {
      store::Filter filter;
      filter.most = 200;
      const auto runs = co_await daemon_.fleet().list(filter);
      if (runs) co_await show(*runs);
      const bool all = ids_.size() == runs_ && std::ranges::all_of(ids_, [&](const std::string& id) {
                         return domain::is_finished(states_[id]);
                       });
      if (all || refused_ || daemon_.engine().phase() > engine::Phase::serving) co_return;
      co_await sleep_for(kFrame);
    }
  }

  Task<> show(const std::vector<engine::RunView>& runs) {
    // From the lock files: a warden frees its slot as soon as its processes are gone, before the engine is notified.
    const auto limits = co_await daemon_.fleet().limits();
    std::uint32_t writers = 0;
    for (const engine::LimitView& limit : *limits) {
      if (limit.name == "agent:writer") writers = static_cast<std::uint32_t>(limit.held);
    }
    most_writers_ = std::max(most_writers_, writers);
    for (const engine::RunView& view : runs) {
      const auto known = states_.find(view.run.id);
      if (known != states_.end() && known->second == view.run.state) continue;
      states_[view.run.id] = view.run.state;
      if (live_ || !titles_.contains(view.run.id)) co_await learn(view.run.id);
      if (!live_) say(view);
    }
    if (live_) draw(runs, writers);
  }

  Task<> learn(const std::string& id) {
    const auto whole = co_await daemon_.fleet().find(id);
    if (whole && *whole) titles_[id] = (*whole)->input.title;
  }

  void say(const engine::RunView& view) {
    cli::print_out("{}  {:20} {}\n", view.run.id, titles_[view.run.id], to_string(view.run.state));
    cli::flush_out();
  }

  void draw(const std::vector<engine::RunView>& runs, std::uint32_t writers) {
    const auto size = os::terminal_size(STDOUT_FILENO);
    std::string out;
    if (drawn_ > 0) out += fmt::format("\033[{}A", drawn_);
    drawn_ = 0;
    const auto add = [&](const Line& line) {
      out += "\r\033[K" + line.clipped(size ? size->columns : kColumns, true).str(colour_) + "\n";
      ++drawn_;
    };
    add(Line(fmt::format("agent:writer {} of {} held   {} queued, {} running, {} done", writers, kWriters,
                         count(RunState::queued), count(RunState::running),
                         count(RunState::succeeded) + count(RunState::cancelled)),
             Style::bold));
    const WallTime now = system_.wall_now();
    for (std::size_t i = 0; i < kShown; ++i) {
      if (i >= runs.size()) {
        add(Line());
        continue;
      }
      const store::Run& run = runs[i].run;
      const bool running = run.state == RunState::running;
      const Style style = running                            ? Style::bold
                          : run.state == RunState::succeeded ? Style::green
                          : run.state == RunState::queued    ? Style::dim
                                                             : Style::yellow;
      const WallTime until = run.finished_at.value_or(now);
      const std::string time = run.started_at ? cli::clock_text(until - *run.started_at) : std::string("–");
      Line line;
      line.add(running ? "▶ " : "  ", Style::green).add(run.id + "  ", Style::dim);
      line.add(fmt::format("{:22} ", titles_[run.id]), style).add(fmt::format("{:10} ", to_string(run.state)), style);
      line.add(time, Style::dim);
      add(line);
    }
    cli::write_out(out);
    cli::flush_out();
  }

  Daemon& daemon_;
  const domain::System& system_;
  const std::uint32_t runs_;
  const bool live_, colour_;
  std::vector<std::string> ids_;
  std::map<std::string, RunState> states_;
  std::map<std::string, std::string> titles_;
  std::optional<Error> refused_;
  std::uint32_t most_writers_ = 0;
  int drawn_ = 0;
};

}  // namespace

DemoFleetCommand::DemoFleetCommand(CLI::App& app)
    : command_(app, "demo fleet",
               "Run a daemon with demo agents against the simulated provider; one run is cancelled") {
  command_.footer(
      "This process contains the provider, the daemon and its store; each agent is a process that calls the provider.\n"
      "Writers take permits of the host limit agent:writer, two at a time. The printed address serves the whole API.\n"
      "On a terminal it submits runs until Ctrl-C, which drains.");
  command_.option("--runs", runs_, "Submit this many runs; default: until Ctrl-C, and 8 without a terminal")
      .whole(1U, kRunsMax);
  command_.option("--listen", listen_, "Listen on this address and port").value("ADDRESS:PORT").shows_default();
  command_.flag("--plain", plain_, "Print one line per event, also on a terminal");
}

int DemoFleetCommand::run(const domain::System& system) {
  const Scratch scratch;
  if (scratch.path().empty())
    return cli::complain(Error(Errc::failed, "can't create a temporary folder; check TMPDIR"));
  ::signal(SIGPIPE, SIG_IGN);
  os::become_subreaper();
  cli::Environment environment = cli::blocking_read_environment();
  const bool live = environment.terminal && !plain_;
  environment.folder = scratch.path();
  environment.variables["XDG_STATE_HOME"] = (scratch.path() / "state").string();
  environment.variables["XDG_CONFIG_HOME"] = (scratch.path() / "config").string();
  provider::Journal journal(nullptr);
  Reactor reactor;
  provider::Server provider(reactor, provider::Script(), journal);
  if (const auto listening = provider.listen("127.0.0.1:0"); !listening) return cli::complain(listening.error());
  const auto snapshot = blocking_make_project(environment, provider.address());
  if (!snapshot) return cli::complain(snapshot.error());
  const auto where = parse_listen(listen_);
  if (!where) return cli::complain(where.error());
  const auto token = blocking_token(scratch.path() / "token", system);
  if (!token) return cli::complain(token.error());
  domain::NoLog log;  // Show prints what happens
  Daemon daemon(reactor, system, environment, *snapshot, false, log);
  daemon.open(std::make_unique<store::MemoryStore>(system), engine_options((*snapshot)->checkout.settings, {}),
              "memory", *token);
  if (const auto listening = daemon.listen(*where, {}); !listening) return cli::complain(listening.error());
  cli::print_out("Serving 2 demo agents on {}\n", daemon.url());
  cli::print_out("  open in a browser          {}\n", cli::dashboard_address(daemon.url(), *token));
  cli::print_out("  try, in another terminal   STINT_URL={} STINT_TOKEN={} {} top\n", daemon.url(), *token,
                 std::filesystem::read_symlink("/proc/self/exe").string());
  cli::flush_out();
  Show show(daemon, system, runs_ != 0 ? runs_ : live ? kRunsMax : kRunsDefault, live, environment.colour);
  std::optional<Result<>> ended;
  {
    ScopeOptions options;
    options.cancel_on_error = false;
    RootScope connections(reactor, options);
    RootScope work(reactor);
    connections.spawn(provider.accept(connections));
    auto serve = [&]() -> Task<> { ended.emplace(co_await daemon.serve()); };
    work.spawn(serve());
    work.spawn(show.run());
    const Result<> shown = reactor.run(work);
    connections.cancel();
    (void)reactor.run(connections);  // cancelled here; failures of single connections are ignored
    if (!shown) return cli::complain(shown.error());
  }
  if (!*ended) return cli::complain(ended->error());
  if (show.refused()) return cli::complain(*show.refused());
  const auto stats = journal.stats();
  cli::print_out("\n{} succeeded, {} cancelled; at most {} of {} writers at once.\n", show.count(RunState::succeeded),
                 show.count(RunState::cancelled), show.most_writers(), kWriters);
  cli::print_out(
      "The provider served {} requests and {} tokens; {} disconnected early, {} tokens were not delivered.\n",
      stats.requests, stats.tokens, stats.closed_early, stats.tokens_after_gone);
  return show.most_writers() > kWriters || stats.tokens_after_gone > 0 ? cli::kExitFailed : cli::kExitDone;
}

}  // namespace stint::app
