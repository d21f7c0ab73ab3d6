#include "cli/top.hpp"

#include "cli/fleet_place.hpp"
#include "cli/fleet_text.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "cli/top_view.hpp"
#include "engine/views.hpp"
#include "os/terminal.hpp"
#include "stint/asio.hpp"
#include "stint/notification.hpp"
#include "wire/fleet.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <unistd.h>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLookGap = 200ms;  // at least between two looks: a person reads no faster
constexpr Duration kLookEvery = 1s, kDrawEvery = 1s;
constexpr std::uint32_t kWaitingShown = 200;
constexpr std::uint32_t kRunningShown = 200;
constexpr os::TerminalSize kPaper{80, 24};

/// The alternate screen of a terminal, with the cursor hidden. The destructor restores both, also after a signal.
class Screen {
 public:
  Screen() { put("\033[?1049h\033[?25l\033[2J"); }
  ~Screen() { put("\033[?25h\033[?1049l"); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void show(const std::vector<Line>& lines, bool colour) {
    std::string out = "\033[H";
    for (std::size_t i = 0; i < lines.size(); ++i) out += (i > 0 ? "\r\n" : "") + lines[i].str(colour) + "\033[K";
    put(out + "\033[J");
  }

 private:
  static void put(std::string_view text) noexcept {
    write_out(text);
    flush_out();
  }
};

Task<Result<TopFrame>> look(FleetAccess& access) {
  TopFrame frame;
  frame.where = access.connection.where();
  frame.daemon = access.connection.is_daemon();
  STINT_CO_TRY(frame.status, co_await access.fleet.status());
  STINT_CO_TRY(frame.limits, co_await access.fleet.limits());
  store::Filter running;
  running.states = {domain::RunState::running};
  running.most = kRunningShown;
  STINT_CO_TRY(frame.running, co_await access.fleet.list(std::move(running)));
  store::Filter filter;
  filter.states = {domain::RunState::queued, domain::RunState::parked, domain::RunState::in_doubt};
  filter.most = kWaitingShown;
  STINT_CO_TRY(frame.waiting, co_await access.fleet.list(std::move(filter)));
  co_return frame;
}

class Top {
 public:
  Top(FleetAccess& access, os::RawTerminal& terminal, TopFrame first)
      : access_(access), keyboard_(access.reactor.io(), terminal.release_input()) {
    view_.update(std::move(first));
  }

  Task<Result<int>> run() {
    auto body = [&](Scope& scope) -> Task<> {
      scope_ = &scope;
      scope.spawn(handle_keys());
      scope.spawn(keep_looking());
      co_await draw_until_quit();
      scope.cancel();
    };
    (void)co_await with_scope(std::ref(body));
    co_return kExitDone;
  }

 private:
  Task<> handle_keys() {
    std::array<char, 64> bytes{};
    KeyReader reader;
    while (true) {
      const auto [error, size] = co_await keyboard_.async_read_some(asio::buffer(bytes), use_task);
      if (error) co_return;  // keys no longer work: the screen stays live until a signal
      for (const Key key : reader.add({bytes.data(), size})) act(view_.press(key));
      changed_.notify();
    }
  }
  void act(TopView::Action action) {
    switch (action.act) {
      case TopView::Act::none: break;
      case TopView::Act::quit: quit_ = true; break;
      case TopView::Act::cancel: scope_->spawn(cancel(std::move(action.run))); break;
      case TopView::Act::drain: scope_->spawn(drain()); break;
    }
  }
  Task<> cancel(std::string id) {
    view_.say("Cancelling " + printable(id) + " …");
    const auto receipt = co_await access_.fleet.cancel(std::move(id));
    view_.say(receipt ? receipt_text(*receipt) : printable(receipt.error().describe()));
    changed_.notify();
  }
  Task<> drain() {
    const auto done = co_await access_.fleet.drain({});
    view_.say(done ? "The daemon drains." : printable(done.error().describe()));
    changed_.notify();
  }
  Task<> keep_looking() {
    std::uint64_t seen = co_await access_.fleet.changed("", 0, Duration::zero());
    while (true) {
      auto frame = co_await look(access_);
      if (frame) {
        view_.update(std::move(*frame));
      } else {
        view_.say(printable(frame.error().describe()));
      }
      changed_.notify();
      co_await sleep_for(kLookGap);
      seen = co_await access_.fleet.changed("", seen, kLookEvery - kLookGap);
    }
  }
  Task<> draw_until_quit() {
    while (!quit_) {
      const std::uint64_t seen = changed_.count();
      const os::TerminalSize size = os::terminal_size(STDOUT_FILENO).value_or(kPaper);
      screen_.show(view_.draw(size.columns, size.rows, access_.system.wall_now()), access_.environment.colour);
      (void)co_await changed_.wait(seen, kDrawEvery);
    }
  }

  FleetAccess& access_;
  asio::posix::stream_descriptor keyboard_;
  Screen screen_;
  TopView view_;
  Notification changed_;
  Scope* scope_ = nullptr;
  bool quit_ = false;
};

/// Prints one object per look, until a signal ends it.
Task<Result<int>> print_each_look(FleetAccess& access) {
  std::uint64_t seen = co_await access.fleet.changed("", 0, Duration::zero());
  while (true) {
    STINT_CO_TRY(const engine::FleetStatus status, co_await access.fleet.status());
    print_out("{}\n", wire::to_json(status));
    flush_out();
    if (std::ferror(stdout) != 0) co_return kExitDone;  // stdout is gone; main() reports why
    co_await sleep_for(kLookGap);
    seen = co_await access.fleet.changed("", seen, kLookEvery - kLookGap);
  }
}

bool obeys_sequences(const Environment& environment) {
  const auto kind = environment.variables.find("TERM");
  return environment.terminal && (kind == environment.variables.end() || kind->second != "dumb");
}

Task<Result<int>> show_top(FleetAccess& access) {
  STINT_CO_TRY(TopFrame frame, co_await look(access));
  if (obeys_sequences(access.environment)) {
    if (auto terminal = os::RawTerminal::open()) {
      Top top(access, *terminal, std::move(frame));
      co_return co_await top.run();
    }
  }
  TopView view;
  view.update(std::move(frame));
  for (const Line& line : view.draw(kPaper.columns, kPaper.rows, access.system.wall_now())) {
    print_out("{}\n", line.str(access.environment.colour));
  }
  co_return kExitDone;
}

}  // namespace

TopCommand::TopCommand(CLI::App& app)
    : command_(app, "top", "Watch the fleet live: workers, queue, limits, runs, cost") {
  command_.footer(
      "Keys: ↑ ↓ select a run · c cancels it · d drains the daemon (both ask first) · q quits.\n"
      "Without a terminal it prints one screen.");
  command_.flag("--json", json_, "Print one JSON object per look, as `stint status` does");
}

bool TopCommand::chosen() const { return command_.chosen(); }

int TopCommand::run(const domain::System& system) {
  return run_on_fleet(system, {},
                      [this](FleetAccess& access) { return json_ ? print_each_look(access) : show_top(access); });
}

}  // namespace stint::cli
