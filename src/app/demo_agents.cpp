#include "app/demo_agents.hpp"

#include "cli/printable.hpp"
#include "cli/run_display.hpp"
#include "cli/surroundings.hpp"
#include "domain/run_id.hpp"
#include "engine/foreground.hpp"
#include "limit/listing.hpp"
#include "provider/ask.hpp"
#include "provider/server.hpp"

#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>

namespace stint::app {
namespace {

using namespace std::chrono_literals;
using cli::Line;
using cli::Style;

constexpr Duration kFrame = 100ms;
constexpr Duration kCancelAfter = 2s;  // one of them is cancelled in the middle of a sentence
constexpr std::uint32_t kRunsMax = 30;
constexpr const char* kAgent = "writer";

/// What is known of one run, for the picture.
struct Row {
  std::string name;
  std::string state = "comes";
  std::string words;
  Style style = Style::dim;
  TimePoint began{};
  bool running = false;
};

/// A folder of its own, gone afterwards.
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
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

class Fleet {
 public:
  Fleet(Reactor& reactor, const domain::Ambient& ambient, std::string folder, std::string port, std::uint32_t at_once,
        bool live, bool colour)
      : reactor_(reactor),
        ambient_(ambient),
        folder_(std::move(folder)),
        port_(std::move(port)),
        at_once_(at_once),
        live_(live),
        colour_(colour),
        limits_(reactor, ambient),
        wardens_(reactor) {}

  Task<> run(std::uint32_t count) {
    auto body = [&](Scope& scope) -> Task<> {
      for (std::uint32_t i = 0; i < count; ++i) {
        rows_.push_back({fmt::format("{} {}", kAgent, i + 1), "comes", "", Style::dim, {}, false});
        scope.spawn(carry(i));
        co_await sleep_for(120ms);
      }
      if (!live_) co_return;
      while (ended_ < count) {
        draw();
        co_await sleep_for(kFrame);
      }
    };
    (void)co_await with_scope(std::ref(body));
    if (live_) draw();
  }
  void cancel() {
    for (engine::ForegroundRun* const run : runs_) run->cancel("cancelled by the keyboard");
  }
  [[nodiscard]] std::uint32_t most_at_once() const noexcept { return most_; }
  [[nodiscard]] std::uint32_t succeeded() const noexcept { return succeeded_; }
  [[nodiscard]] std::uint32_t cancelled() const noexcept { return cancelled_; }

 private:
  engine::RunPlan plan(std::uint32_t index) {
    engine::RunPlan plan;
    plan.id = domain::new_run_id(ambient_);
    plan.label = rows_[index].name;
    plan.driver = "command";
    plan.attempt.command = {"/proc/self/exe", provider::kAskArgument, "127.0.0.1", port_,
                            fmt::format("@provider: tokens={} rate=14/s\nWhat do you think of permit {}?",
                                        40 + ambient_.random() % 30, index + 1)};
    plan.limits.push_back({limit(), 1});
    plan.grace = 1s;
    return plan;
  }

  [[nodiscard]] limit::HostLimit limit() const {
    limit::HostLimit limit;
    limit.name = std::string("agent:") + kAgent;
    limit.directory = folder_;
    limit.capacity = at_once_;
    return limit;
  }

  Task<> carry(std::uint32_t index) {
    engine::ForegroundRun run(reactor_, ambient_, limits_, wardens_, plan(index),
                              [this, index](const engine::RunEvent& event) { hear(index, event); });
    runs_.push_back(&run);
    auto body = [&](Scope& scope) -> Task<engine::RunResult> {
      if (index == 2) scope.spawn(cancel_later(index, run));
      engine::RunResult result = co_await run.run();
      scope.cancel();
      co_return result;
    };
    const auto result = co_await with_scope(std::ref(body));
    std::erase(runs_, &run);
    ++ended_;
    Row& row = rows_[index];
    row.running = false;
    const bool good = result && result->end == domain::RunEnd::succeeded;
    succeeded_ += good ? 1 : 0;
    cancelled_ += result && result->end == domain::RunEnd::cancelled ? 1 : 0;
    row.style = good ? Style::green : Style::yellow;
    set(index, fmt::format("{} after {}", result ? to_string(result->end) : "failed",
                           cli::clock_text(result ? result->elapsed : Duration::zero())));
  }

  /// One of them is told to stop while it speaks: its process is gone, and the provider sees the connection close.
  Task<> cancel_later(std::uint32_t index, engine::ForegroundRun& run) {
    while (!rows_[index].running) co_await sleep_for(kFrame);
    co_await sleep_for(kCancelAfter);
    run.cancel("cancelled, to show that nothing is left");
  }

  void hear(std::uint32_t index, const engine::RunEvent& event) {
    Row& row = rows_[index];
    switch (event.kind) {
      case engine::RunEvent::Kind::waiting:
        row.style = Style::dim;
        return set(index, event.reason->ahead == 0 ? "waits, next in line"
                                                   : fmt::format("waits, {} ahead", event.reason->ahead));
      case engine::RunEvent::Kind::started:
        row.running = true;
        row.began = reactor_.now();
        row.style = Style::bold;
        // From the lock files: a warden frees its slot as soon as its processes are gone, a moment before we hear of
        // it.
        most_ = std::max(most_, static_cast<std::uint32_t>(limit::list(limit()).holders.size()));
        return set(index, "runs");
      case engine::RunEvent::Kind::progress:
        if (event.progress->kind != driver::ProgressKind::text) return;
        row.words = cli::printable(event.progress->text);
        if (!live_) fmt::print("{:10} says: {}\n", row.name, row.words);
        return;
      case engine::RunEvent::Kind::attempt_ended: row.running = false; return;
      case engine::RunEvent::Kind::backing_off:
      case engine::RunEvent::Kind::ended: return;
    }
  }

  void set(std::uint32_t index, std::string state) {
    if (rows_[index].state == state) return;
    rows_[index].state = std::move(state);
    if (!live_) {
      fmt::print("{:10} {}\n", rows_[index].name, rows_[index].state);
      std::fflush(stdout);
    }
  }

  void draw() {
    const cli::Surroundings around = cli::blocking_look_around();
    std::string out;
    if (drawn_ > 0) out += fmt::format("\033[{}A", drawn_);
    drawn_ = 0;
    const auto add = [&](const Line& line) {
      out += "\r\033[K" + line.clipped(around.columns, true).str(colour_) + "\n";
      ++drawn_;
    };
    add(Line(fmt::format("agent:{}  max_concurrency {}   {} running, {} in line, {} done", kAgent, at_once_,
                         std::ranges::count(rows_, true, &Row::running),
                         std::ranges::count_if(rows_, [](const Row& row) { return row.state.starts_with("waits"); }),
                         ended_),
             Style::bold));
    for (const Row& row : rows_) {
      const std::string state = row.running ? "runs " + cli::clock_text(reactor_.now() - row.began) : row.state;
      Line line;
      line.add(row.running ? "▶ " : "  ", Style::green).add(fmt::format("{:10} ", row.name), row.style);
      line.add(fmt::format("{:22} ", state), row.running ? Style::plain : row.style).add(row.words, Style::dim);
      add(line);
    }
    std::fputs(out.c_str(), stdout);
    std::fflush(stdout);
  }

  Reactor& reactor_;
  const domain::Ambient& ambient_;
  const std::string folder_, port_;
  const std::uint32_t at_once_;
  const bool live_, colour_;
  limit::HostLimits limits_;
  driver::Wardens wardens_;
  std::deque<Row> rows_;
  std::vector<engine::ForegroundRun*> runs_;
  std::uint32_t ended_ = 0, succeeded_ = 0, cancelled_ = 0, most_ = 0;
  int drawn_ = 0;
};

}  // namespace

DemoAgentsCommand::DemoAgentsCommand(CLI::App& app)
    : command_(app, "demo agents",
               "Several agents at once against the simulated provider, two at a time; one is cancelled") {
  command_.footer(
      "Each agent is a process that asks the provider, which runs here, too. They take permits of the host limit\n"
      "agent:writer; who finds none waits in line. Ctrl-C ends all of them.");
  command_.option("--runs", runs_, "How many").whole(1U, kRunsMax).shows_default();
  command_.option("--max-concurrency", at_once_, "How many at once").whole(1U, kRunsMax).shows_default();
  command_.flag("--plain", plain_, "One line per event, on a terminal too");
}

bool DemoAgentsCommand::chosen() const { return command_.chosen(); }

int DemoAgentsCommand::run(const domain::Ambient& ambient) {
  const cli::Surroundings around = cli::blocking_look_around();
  const Scratch scratch;
  if (scratch.path().empty()) return cli::complain(Error(Errc::failed, "no folder for temporary files can be made"));
  ::signal(SIGPIPE, SIG_IGN);
  os::become_subreaper();
  provider::Journal journal(nullptr);
  Reactor reactor;
  provider::Server server(reactor, provider::Script(), journal);
  if (const auto listening = server.listen("127.0.0.1:0"); !listening) return cli::complain(listening.error());
  const std::string port = server.address().substr(server.address().rfind(':') + 1);
  const bool live = around.terminal && !plain_;
  Fleet fleet(reactor, ambient, scratch.path(), port, at_once_, live, around.colour);
  {
    ScopeOptions options;
    options.cancel_on_error = false;
    RootScope connections(reactor, options);
    RootScope work(reactor);
    asio::signal_set signals(reactor.io(), SIGINT, SIGTERM);
    connections.spawn(server.accept(connections));
    work.spawn(fleet.run(runs_));
    signals.async_wait([&](const boost::system::error_code& error, int) {
      if (!error) fleet.cancel();
    });
    reactor.run(work);
    signals.cancel();
    connections.cancel();
    reactor.run(connections);
  }
  const auto stats = journal.stats();
  fmt::print("\n{} succeeded, {} cancelled; at most {} of {} at once.\n", fleet.succeeded(), fleet.cancelled(),
             fleet.most_at_once(), at_once_);
  fmt::print("The provider saw {} requests and {} tokens; {} client left early, {} tokens were made for nobody.\n",
             stats.requests, stats.tokens, stats.closed_early, stats.tokens_after_gone);
  return fleet.most_at_once() > at_once_ || stats.tokens_after_gone > 0 ? 1 : 0;
}

}  // namespace stint::app
