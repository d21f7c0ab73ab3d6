#include "cli/run_display.hpp"

#include "agent/quantity.hpp"
#include "cli/printable.hpp"
#include "os/terminal.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <unistd.h>

namespace stint::cli {
namespace {

using Kind = engine::RunEvent::Kind;

constexpr std::size_t kToolShown = 120;

int error_columns() {
  const auto size = os::terminal_size(STDERR_FILENO);
  return size ? size->columns : 80;
}

/// The agent's words may be several lines; control characters are taken out, line by line.
std::string safe_lines(std::string_view text) {
  std::string out;
  for (std::size_t from = 0; from <= text.size();) {
    const auto to = std::min(text.find('\n', from), text.size());
    if (from != 0) out += '\n';
    out += printable(text.substr(from, to - from));
    from = to + 1;
  }
  return out;
}

}  // namespace

std::string short_count(std::int64_t count) {
  if (count < 1000) return std::to_string(count);
  if (count < 1'000'000) return fmt::format("{:.1f}k", static_cast<double>(count) / 1e3);
  return fmt::format("{:.1f}M", static_cast<double>(count) / 1e6);
}

std::string clock_text(Duration duration) {
  const auto seconds = std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(duration).count());
  if (seconds >= 3600) return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
}

RunDisplay::RunDisplay(const Surroundings& around, bool quiet)
    : colour_(around.colour_errors),
      live_(!quiet && os::terminal_size(STDERR_FILENO).has_value()),
      quiet_(quiet),
      columns_(error_columns()) {}

RunDisplay::~RunDisplay() { clear_line(); }

void RunDisplay::clear_line() {
  if (!std::exchange(drawn_, false)) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

void RunDisplay::say(const std::string& text) {
  if (quiet_) return;
  clear_line();
  Line line;
  line.add("stint: " + text, Style::dim);
  fmt::print(stderr, "{}\n", line.str(colour_));
}

void RunDisplay::print(std::string_view text) {
  clear_line();
  printed_ = true;
  fmt::print("{}\n", safe_lines(text));
  std::fflush(stdout);
}

void RunDisplay::show(const engine::RunEvent& event) {
  switch (event.kind) {
    case Kind::waiting: state_ = "waiting"; return say("waiting for " + printable(event.reason->describe()));
    case Kind::started:
      state_ = "running";
      if (event.attempt > 1) say(fmt::format("attempt {}", event.attempt));
      return;
    case Kind::backing_off:
      state_ = "backing off";
      return say(fmt::format("{}; next attempt in {}", printable(event.text), clock_text(event.wait)));
    case Kind::attempt_ended:
      if (event.report->processes_ended > 0) {
        say(fmt::format("{} {} ended in {} ms", event.report->processes_ended,
                        event.report->processes_ended == 1 ? "process" : "processes",
                        std::chrono::duration_cast<std::chrono::milliseconds>(event.report->ending).count()));
      }
      return;
    case Kind::progress: break;
    case Kind::ended: return;
  }
  switch (event.progress->kind) {
    case driver::ProgressKind::text: return print(event.progress->text);
    case driver::ProgressKind::tool_start: return say(printable(event.progress->text.substr(0, kToolShown)));
    case driver::ProgressKind::rate_info:
    case driver::ProgressKind::conversation: return;
    case driver::ProgressKind::note: return say(printable(event.progress->text));
    case driver::ProgressKind::thinking:
    case driver::ProgressKind::tool_end:
    case driver::ProgressKind::heartbeat:
    case driver::ProgressKind::usage: return;
  }
}

void RunDisplay::refresh(const engine::ForegroundRun& run) {
  if (!live_) return;
  const Usage usage = run.usage();
  Line line;
  line.add(state_, Style::bold).add(" " + clock_text(run.elapsed()));
  if (usage.tokens() > 0) line.add(" · " + short_count(usage.tokens()) + " tokens");
  if (usage.money_micros > 0) line.add(" · $" + agent::format_money(usage.money_micros));
  if (!run.deadline().is_never()) line.add(" · " + clock_text(run.time_left()) + " left");
  line.add(" · Ctrl-C cancels", Style::dim);
  fmt::print(stderr, "\r\033[K{}", line.clipped(columns_ - 1, true).str(colour_));
  std::fflush(stderr);
  drawn_ = true;
}

void RunDisplay::show_result(const engine::RunResult& result) {
  clear_line();
  if (!printed_ && !result.text.empty()) fmt::print("{}\n", safe_lines(result.text));
  std::fflush(stdout);
  for (const Denial& denial : result.denials) {
    say(fmt::format("refused: {} {}; to allow it: {}", printable(denial.tool), printable(denial.call),
                    printable(denial.allow)));
  }
  std::string sums = fmt::format("{} after {}", to_string(result.end), clock_text(result.elapsed));
  if (result.attempts > 1) sums += fmt::format(", {} attempts", result.attempts);
  if (result.usage.tokens() > 0) sums += ", " + short_count(result.usage.tokens()) + " tokens";
  if (result.usage.money_micros > 0) sums += ", $" + agent::format_money(result.usage.money_micros);
  if (!result.message.empty()) sums += ": " + printable(result.message);
  // What went wrong is said also to who wanted quiet.
  if (quiet_ && result.end == domain::RunEnd::succeeded) return;
  Line line;
  line.add("stint: " + sums, result.end == domain::RunEnd::succeeded ? Style::dim : Style::red);
  fmt::print(stderr, "{}\n", line.str(colour_));
}

}  // namespace stint::cli
