#include "cli/demo.hpp"

#include "cli/demo_garage.hpp"
#include "cli/demo_view.hpp"
#include "cli/print.hpp"
#include "os/terminal.hpp"
#include "stint/asio.hpp"

#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <unistd.h>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFrame = 66ms;        // 15 pictures a second
constexpr std::size_t kRecentMax = 100;  // events that a very tall terminal can show
constexpr double kSpeedUnwatched = 20;   // without a terminal
constexpr std::uint32_t kNamesMax = 6;   // in the report of an interrupt

template <class Number>
std::optional<Number> parse(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Draws each picture over the one before. Hides the cursor; the destructor shows it again.
class DemoScreen {
 public:
  DemoScreen() { write_out("\033[?25l"); }
  ~DemoScreen() {
    write_out("\033[?25h");
    flush_out();
  }
  DemoScreen(const DemoScreen&) = delete;
  DemoScreen& operator=(const DemoScreen&) = delete;

  void show(const std::vector<std::string>& lines, os::TerminalSize size) {
    std::string out;
    if (drawn_ > 0 && size != size_) {
      out = "\033[2J\033[H";  // the terminal was resized and wrapped the old picture: clear it
    } else if (drawn_ > 0) {
      out = fmt::format("\033[{}A\r", drawn_);
    }
    for (const std::string& line : lines) out += line + "\033[K\n";
    out += "\033[J";
    write_out(out);
    flush_out();
    drawn_ = lines.size();
    size_ = size;
  }

 private:
  std::size_t drawn_ = 0;
  os::TerminalSize size_;
};

enum class Form : std::uint8_t { picture, lines, json };

/// One run of the demo: the garage, its picture, and the signals that end it early.
class Show {
 public:
  Show(const DemoOptions& options, double speed, Form form)
      : form_(form), garage_(reactor_, options, speed, [this](const wire::DemoEvent& event) { hear(event); }) {
    look_.utf8 = shows_utf8({locale(), os::environment("TERM")});
    look_.colour = os::environment("NO_COLOR").empty();
  }

  int run() {
    {
      RootScope helpers(reactor_);
      RootScope work(reactor_);
      if (form_ == Form::picture) {
        screen_.emplace();
        helpers.spawn(paint());
      }
      helpers.spawn(listen_for_signals(work));
      work.spawn(garage_.run());
      (void)reactor_.run(work);  // the garage reports its own results; a signal stops it early
      if (form_ == Form::picture) show_picture();
      helpers.cancel(Reason::shutdown);
      (void)reactor_.run(helpers);  // cancelled here
      screen_.reset();
    }
    return report();
  }

 private:
  static std::string locale() {
    for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
      if (std::string value = os::environment(name); !value.empty()) return value;
    }
    return {};
  }

  void hear(const wire::DemoEvent& event) {
    recent_.push_back(event);
    if (recent_.size() > kRecentMax) recent_.pop_front();
    if (form_ == Form::lines) print_out("{}\n", describe_line(event));
    if (form_ == Form::json) print_out("{}\n", wire::to_json(event));
    if (form_ != Form::picture) flush_out();
  }

  Task<> paint() {
    while (true) {
      show_picture();
      co_await sleep_for(kFrame);
    }
  }
  void show_picture() {
    const os::TerminalSize size = os::terminal_size(STDOUT_FILENO).value_or(os::TerminalSize{80, 24});
    look_.columns = size.columns;
    look_.rows = std::max(1, size.rows - 1);  // the cursor stands below
    const GarageView view = garage_.look();
    spaces_.update(view.parked, view.capacity);
    screen_->show(draw(view, spaces_, recent_, look_), size);
  }

  Task<> listen_for_signals(Scope& work) {
    asio::signal_set signals(reactor_.io(), SIGINT, SIGTERM, SIGHUP);
    const auto [error, number] = co_await signals.async_wait(use_task);
    if (error) co_return;
    signal_ = number;
    cancelled_at_ = reactor_.now();
    cancelled_ = garage_.look();
    work.cancel(Reason::user, "stopped by a signal");
  }

  int report() {
    wire::DemoSummary summary = garage_.summary();
    summary.interrupted = signal_ != 0;
    summary.cancelled += static_cast<std::uint32_t>(cancelled_.parked.size() + cancelled_.line.size());
    if (form_ == Form::json) {
      print_out("{}\n", wire::to_json(summary));
    } else {
      if (signal_ != 0) report_signal();
      print_out("\n{}", describe(summary));
    }
    if (signal_ != 0) return 128 + signal_;
    return summary.over_limit == 0 && summary.permits_out == 0 ? 0 : 1;
  }

  void report_signal() {
    const auto names = [](const auto& list) {
      std::string out;
      for (std::size_t i = 0; i < list.size() && i < kNamesMax; ++i) out += (i == 0 ? "" : ", ") + list[i].who;
      if (list.size() > kNamesMax) out += fmt::format(" and {} more", list.size() - kNamesMax);
      return out.empty() ? "none" : out;
    };
    const auto took = std::chrono::duration<double, std::milli>(reactor_.now() - cancelled_at_).count();
    print_out("\n{}: cancelled and joined in {:.1f} ms.\n", signal_ == SIGINT ? "Ctrl-C" : "Stopped by a signal", took);
    print_out("  inside           {}\n", names(cancelled_.parked));
    print_out("  in line          {}\n", names(cancelled_.line));
  }

  const Form form_;
  Reactor reactor_;
  Look look_;
  std::deque<wire::DemoEvent> recent_;
  Spaces spaces_;
  Garage garage_;  // its semaphore would have to outlive the reactor's frames, but run() leaves none
  std::optional<DemoScreen> screen_;
  int signal_ = 0;
  TimePoint cancelled_at_;
  GarageView cancelled_;
};

}  // namespace

bool shows_utf8(const TerminalSettings& settings) {
  if (!settings.locale.empty()) {
    return settings.locale.find("UTF-8") != std::string::npos || settings.locale.find("utf8") != std::string::npos;
  }
  // Multiplexers replace what the locale does not cover; the kernel's console has few glyphs. Others show UTF-8.
  const auto begins = [&](std::string_view with) { return settings.term.starts_with(with); };
  return !(begins("screen") || begins("tmux") || begins("linux") || begins("dumb"));
}

DemoCommand::DemoCommand(CLI::App& app)
    : command_(app, "demo", "Watch a semaphore: workers queue for the spaces of a garage") {
  command_.footer(
      "stint::Semaphore decides everything you see while the demo runs. On a terminal it is an animation; into a file\n"
      "or a pipe it prints one line per event. Ctrl-C cancels all workers, and no permit is lost.");
  command_.option("--capacity", capacity_, "Set the spaces of the garage: the limit (default 4)").whole(1, 32);
  command_.option("--workers", workers_, "Set the number of workers (default: twice the capacity, plus 1)")
      .whole(1, 200);
  command_.option("--seconds", seconds_, "Set the length of the demo (default 22)").whole(10, 3600);
  command_.option("--seed", seed_, "Set the seed of arrivals and stays (default 1)").whole(0, 1'000'000'000);
  command_.option("--speed", speed_, "Multiply the speed (default 1; without a terminal 20)").number(0.1, 1000.0);
  command_.flag("--plain", plain_, "Print one line per event, also on a terminal");
  command_.flag("--json", json_, "Print one JSON object per event, then one with the totals");
}

bool DemoCommand::chosen() const { return command_.chosen(); }

int DemoCommand::run() {
  DemoOptions options;
  options.capacity = parse<std::uint32_t>(capacity_).value_or(options.capacity);
  options.workers = parse<std::uint32_t>(workers_).value_or(2 * options.capacity + 1);
  options.length = std::chrono::seconds(parse<std::uint32_t>(seconds_).value_or(22));
  options.seed = parse<std::uint32_t>(seed_).value_or(static_cast<std::uint32_t>(options.seed));
  const std::string term = os::environment("TERM");
  const bool terminal = os::terminal_size(STDOUT_FILENO).has_value() && !term.empty() && term != "dumb";
  const Form form = json_ ? Form::json : terminal && !plain_ ? Form::picture : Form::lines;
  const double speed = parse<double>(speed_).value_or(terminal ? 1 : kSpeedUnwatched);
  return Show(options, speed, form).run();
}

}  // namespace stint::cli
