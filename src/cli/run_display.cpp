#include "cli/run_display.hpp"

#include "agent/quantity.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "os/terminal.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <unistd.h>
#include <utility>

namespace stint::cli {
namespace {

using domain::RunState;

constexpr std::size_t kToolShown = 120;

int error_columns() {
  const auto size = os::terminal_size(STDERR_FILENO);
  return size ? size->columns : 80;
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

RunDisplay::RunDisplay(OutputBuffer& out, const Environment& environment, bool quiet)
    : out_(out),
      colour_(environment.colour_errors),
      raw_(!environment.terminal),
      clean_(environment.colour),
      live_(!quiet && os::terminal_size(STDERR_FILENO).has_value()),
      quiet_(quiet),
      columns_(error_columns()) {}

RunDisplay::~RunDisplay() { clear_line(); }

void RunDisplay::clear_line() {
  if (!std::exchange(drawn_, false)) return;
  print_error("\r\033[K");
  std::fflush(stderr);
}

void RunDisplay::say(const std::string& text) {
  if (!quiet_) warn(text);
}

void RunDisplay::warn(const std::string& text) {
  clear_line();
  Line line;
  line.add("stint: " + text, Style::dim);
  print_error("{}\n", line.str(colour_));
}

void RunDisplay::print(std::string_view text) {
  if (text.empty()) return;
  clear_line();
  printed_ = true;
  in_line_ = !text.ends_with('\n');
  if (raw_) return out_.put(text);
  out_.put(clean_.add(text));
}

void RunDisplay::show_wait(const std::string& why) {
  state_ = "waiting";
  wait_ = why;
  say("waiting: " + printable(why));
}

void RunDisplay::show(const store::Event& event, std::string_view note) {
  if (event.cause == "tool") return say(printable(note.substr(0, kToolShown)));
  if (event.cause == "note") return say(printable(note));
  if (!event.state || event.cause == "unsafe" || event.cause == "safe") return;
  state_ = to_string(*event.state);
  if (event.cause == "claimed" && event.fence.value > 1) return say("next attempt begins");
  if (event.cause == "retry" && *event.state == RunState::queued) {
    state_ = "backing off";
    return say(printable(event.error) + "; retrying after a back-off");
  }
  if (*event.state == RunState::parked) {
    return say("parked: " + printable(event.error) +
               (event.hold == domain::Hold::person ? "; it waits for a person" : ""));
  }
  if (event.cause == "lost") say("the node that carried the run died");
}

void RunDisplay::refresh(const engine::RunView& run, WallTime now) {
  if (!live_ || in_line_) return;
  const Usage& usage = run.memo.usage;
  Line line;
  line.add(state_, Style::bold).add(" " + clock_text(now - run.run.created_at));
  if (usage.tokens() > 0) line.add(" · " + short_count(usage.tokens()) + " tokens");
  if (usage.cost_micros > 0) line.add(" · $" + agent::format_cost(usage.cost_micros));
  if (run.run.expires_at) line.add(" · " + clock_text(*run.run.expires_at - now) + " left");
  line.add(" · Ctrl-C cancels", Style::dim);
  print_error("\r\033[K{}", line.clipped(columns_ - 1, true).str(colour_));
  std::fflush(stderr);
  drawn_ = true;
}

void RunDisplay::show_result(const engine::RunView& view) {
  const store::Run& run = view.run;
  const domain::RunMemo& memo = view.memo;
  const bool succeeded = run.state == RunState::succeeded;
  clear_line();
  if (!printed_ && !memo.text.empty()) print(memo.text + "\n");
  if (!raw_) out_.put(clean_.finish());
  if (std::exchange(in_line_, false) && !raw_) out_.put("\n");
  for (const Denial& denial : memo.denials) {
    say(fmt::format("refused: {} {}; to allow it: {}", printable(denial.tool), printable(denial.call),
                    printable(denial.allow)));
  }
  if (memo.processes_ended > 0) {
    say(fmt::format("{} {} ended in {} ms", memo.processes_ended, memo.processes_ended == 1 ? "process" : "processes",
                    std::chrono::duration_cast<std::chrono::milliseconds>(memo.ending).count()));
  }
  const WallTime end = run.finished_at.value_or(run.created_at);
  std::string sums = fmt::format("{} after {}", to_string(run.state), clock_text(end - run.created_at));
  if (!run.finished_at) sums = std::string(to_string(run.state));
  if (run.attempt > 1) sums += fmt::format(", {} attempts", run.attempt);
  if (memo.usage.tokens() > 0) sums += ", " + short_count(memo.usage.tokens()) + " tokens";
  if (memo.usage.cost_micros > 0) sums += ", $" + agent::format_cost(memo.usage.cost_micros);
  const bool says_more = !run.error.empty() && run.error != to_string(run.state);
  if (run.state == RunState::expired && !run.started_at && !wait_.empty()) {
    sums += ": not started, " + printable(wait_);
  } else if (says_more && !succeeded) {
    sums += ": " + printable(run.error);
  }
  if (run.state == RunState::in_doubt) {
    sums += fmt::format(
        "; `stint resolve {0} --done`, `stint resolve {0} --rerun` or `stint resolve {0} --discard` "
        "settles it",
        run.id);
  }
  if (run.state == RunState::parked) {
    sums += fmt::format(
        "; when that is settled, `stint resume {}` continues it and every run parked for the same reason", run.id);
  }
  // Failures are printed also with --quiet.
  if (quiet_ && succeeded) return;
  Line line;
  line.add("stint: " + sums, succeeded ? Style::dim : Style::red);
  print_error("{}\n", line.str(colour_));
}

}  // namespace stint::cli
