#include "cli/fleet_text.hpp"

#include "agent/quantity.hpp"
#include "cli/printable.hpp"
#include "cli/reason_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;
using domain::Hold;
using domain::RunState;
using std::chrono::duration_cast;

constexpr std::size_t kNoteShown = 160;
constexpr int kElasticMin = 8;   // a narrower column can't be read
constexpr int kElasticMax = 80;  // without a terminal: one long title must not widen every row

std::string_view cause_text(std::string_view cause) noexcept {
  struct Words {
    std::string_view cause, text;
  };
  static constexpr Words kWords[] = {{"enqueued", "submitted"},
                                     {"promoted", "now first in its session"},
                                     {"woken", "wait over"},
                                     {"answered", "answered by a person"},
                                     {"limit_resumed", "limit resumed"},
                                     {"loaded", "imported from another store"},
                                     {"unsafe", "starts work that must not be repeated"},
                                     {"safe", "that work is done"},
                                     {"cancel_asked", "cancel requested"},
                                     {"hand_back", "handed back to the queue"},
                                     {"lost", "its process died"},
                                     {"retry", "attempt failed"},
                                     {"park", "parked"},
                                     {"resolved_done", "resolved by a person: done"},
                                     {"resolved_rerun", "resolved by a person: run again"},
                                     {"resolved_discard", "resolved by a person: discarded"}};
  const auto found = std::ranges::find(kWords, cause, &Words::cause);
  return found == std::end(kWords) ? cause : found->text;
}

/// Events that do not change the run's state.
bool keeps_state(std::string_view cause) noexcept {
  constexpr std::string_view kSuch[] = {domain::kEnqueued, "promoted", "loaded", "unsafe", "safe", "cancel_asked"};
  return std::ranges::find(kSuch, cause) != std::end(kSuch);
}

}  // namespace

std::string age_text(Duration age) {
  const auto seconds = std::max<std::int64_t>(0, duration_cast<std::chrono::seconds>(age).count());
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m", seconds / 60);
  if (seconds < 86400) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", seconds / 86400);
}

std::string length_text(Duration length) {
  length = std::max(length, Duration::zero());
  if (length < 1s) return fmt::format("{} ms", duration_cast<std::chrono::milliseconds>(length).count());
  if (length < 10s) {
    return fmt::format("{:.1f}s", std::chrono::duration<double>(length).count());
  }
  if (length < 1h) return agent::format_duration(std::chrono::floor<std::chrono::seconds>(length));
  return agent::format_duration(std::chrono::floor<std::chrono::minutes>(length));
}

std::string cost_text(const Usage& usage) {
  if (usage.cost_micros == 0) return "-";
  constexpr double kMicros = 1e6;
  const double cost = static_cast<double>(usage.cost_micros) / kMicros;
  return fmt::format("{}${:.{}f}", usage.estimated ? "~" : "", cost, cost < 0.01 ? 4 : 2);
}

std::string count_text(std::int64_t count) {
  if (count < 1000) return std::to_string(count);
  if (count < 1'000'000) return fmt::format("{:.1f}k", static_cast<double>(count) / 1e3);
  return fmt::format("{:.1f}M", static_cast<double>(count) / 1e6);
}

std::string moment_text(WallTime time) {
  const std::time_t seconds = duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
  std::tm parts{};
  if (::localtime_r(&seconds, &parts) == nullptr) return "?";
  char text[32];
  return {text, std::strftime(text, sizeof(text), "%F %T", &parts)};
}

std::string some(std::uint64_t count, std::string_view one, std::string_view several) {
  if (count == 1) return fmt::format("1 {}", one);
  return several.empty() ? fmt::format("{} {}s", count, one) : fmt::format("{} {}", count, several);
}

Style state_style(RunState state) noexcept {
  switch (state) {
    case RunState::queued: return Style::plain;
    case RunState::running: return Style::cyan;
    case RunState::parked: return Style::yellow;
    case RunState::succeeded: return Style::green;
    case RunState::failed:
    case RunState::expired: return Style::red;
    case RunState::cancelled: return Style::dim;
    case RunState::in_doubt: return Style::magenta;
  }
  return Style::plain;
}

// ---- tables --------------------------------------------------------------------------------------------------------

Table::Table(std::vector<std::string> heads, std::vector<bool> right)
    : heads_(std::move(heads)), right_(std::move(right)) {
  right_.resize(heads_.size());
}

void Table::add(std::vector<Line> cells) {
  cells.resize(heads_.size());
  rows_.push_back(std::move(cells));
}

std::vector<Line> Table::lines(int columns, std::size_t elastic) const {
  std::vector<int> widths;
  int whole = -2;
  for (std::size_t column = 0; column < heads_.size(); ++column) {
    int width = width_of(heads_[column]);
    for (const auto& row : rows_) width = std::max(width, row[column].width());
    if (columns == 0 && column == elastic) width = std::min(width, kElasticMax);
    widths.push_back(width);
    whole += width + 2;
  }
  if (columns > 0 && whole > columns) {
    widths[elastic] = std::max(kElasticMin, widths[elastic] - (whole - columns));
  }
  const auto put = [&](const std::vector<Line>& cells) {
    Line line;
    for (std::size_t column = 0; column < cells.size(); ++column) {
      if (column > 0) line.add("  ");
      const Line cell = cells[column].clipped(widths[column], true);
      const std::string space(static_cast<std::size_t>(widths[column] - cell.width()), ' ');
      if (right_[column]) line.add(space);
      line.add(cell);
      if (!right_[column] && column + 1 < cells.size()) line.add(space);
    }
    return line;
  };
  std::vector<Line> out;
  std::vector<Line> heads;
  for (const std::string& head : heads_) heads.emplace_back(head, Style::dim);
  out.push_back(put(heads));
  for (const auto& row : rows_) out.push_back(put(row));
  return out;
}

Table runs_table(const std::vector<engine::RunView>& runs, WallTime now) {
  Table table({"ID", "AGENT", "STATE", "AGE", "TITLE", "COST"}, {false, false, false, true, false, true});
  for (const engine::RunView& view : runs) {
    const store::Run& run = view.run;
    table.add({Line(printable(run.id)), Line(printable(run.agent)),
               Line(std::string(to_string(run.state)), state_style(run.state)), Line(age_text(now - run.created_at)),
               Line(printable(view.input.title)), Line(cost_text(view.memo.usage))});
  }
  return table;
}

// ---- in words ------------------------------------------------------------------------------------------------------

std::string state_text(const store::Run& run) {
  const std::string state(to_string(run.state));
  if (run.stop != domain::Stop::none && run.state == RunState::running) {
    return state + (run.stop == domain::Stop::cancelled ? ", being cancelled" : ", being ended: its time is used up");
  }
  switch (run.hold) {
    case Hold::none: return state;
    case Hold::session: return state + ", behind an earlier run of its session";
    case Hold::delay: return state + ", until its start time";
    case Hold::backoff: return state + ", until its next attempt";
    case Hold::quota: return state + ", until what it needs is available again";  // the run's error names it
    case Hold::person: return state + ", until a person answers";
  }
  return state;
}

std::string until_text(const std::optional<WallTime>& until, WallTime now) {
  if (!until) return {};
  return *until <= now ? ", due now" : ", for " + length_text(*until - now) + " more";
}

std::vector<std::string> why_lines(const engine::WhyView& why, WallTime now, bool carried) {
  std::vector<std::string> lines;
  for (const domain::WaitReason& each : why.reasons) lines.push_back(reason_text(each, now));
  switch (why.state) {
    case RunState::queued:
      if (!carried) lines.emplace_back("no daemon runs here: `stint serve` starts one");
      if (lines.empty()) lines.emplace_back("nothing blocks it: it is about to begin");
      break;
    case RunState::parked: break;
    case RunState::running:
      if (lines.empty()) lines.emplace_back("not waiting: it is running");
      break;
    case RunState::in_doubt:
      lines.push_back(fmt::format(
          "its effects are unknown. Check them, then run `stint resolve {0} --done`, `stint resolve {0} --rerun` or "
          "`stint resolve {0} --discard`",
          printable(why.run)));
      break;
    case RunState::succeeded:
    case RunState::failed:
    case RunState::cancelled:
    case RunState::expired: lines.push_back("not waiting: it has ended, " + std::string(to_string(why.state)));
  }
  return lines;
}

std::string span_text(const domain::Span& span) {
  std::string text = fmt::format("{} {}, {}", to_string(span.kind), span.name, length_text(span.length));
  if (span.usage.tokens() > 0) text += fmt::format(", {} tokens", count_text(span.usage.tokens()));
  return text;
}

std::vector<Line> timeline_lines(const engine::Timeline& timeline) {
  constexpr std::size_t kShown = 40;  // of a longer one, the first and the last half
  std::vector<Line> lines;
  if (timeline.segments.empty()) return lines;
  lines.emplace_back().add(
      fmt::format("  {} waiting, {} working", length_text(timeline.waiting), length_text(timeline.working)));
  const std::size_t count = timeline.segments.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (count > kShown && i == kShown / 2) {
      i = count - kShown / 2;
      lines.emplace_back(fmt::format("            … {} left out; --json has all …", i - kShown / 2), Style::dim);
    }
    const engine::Segment& each = timeline.segments[i];
    Line& line = lines.emplace_back();
    line.add(fmt::format("  {:>8}  {:>8}  ", "+" + age_text(each.at - timeline.begun), length_text(each.length)),
             Style::dim);
    std::string what(to_string(each.kind));
    std::ranges::replace(what, '_', ' ');
    line.add(what + (each.name.empty() ? "" : " " + printable(each.name)),
             engine::is_wait(each.kind) ? Style::yellow : Style::plain);
    if (each.attempt > 1) line.add(fmt::format(", attempt {}", each.attempt), Style::dim);
  }
  return lines;
}

Line event_line(const store::Event& event, std::string_view note, WallTime begin) {
  Line line;
  line.add(fmt::format("  {:>8}  ", "+" + age_text(event.at - begin)), Style::dim);
  if (event.cause == "claimed") {
    line.add("attempt begins", Style::bold).add(fmt::format(", fence {}", event.fence.value), Style::dim);
  } else if (event.state && event.cause == to_string(*event.state)) {
    line.add(event.cause, state_style(*event.state));
  } else {
    line.add(printable(cause_text(event.cause)));
    if (event.state && !keeps_state(event.cause)) {
      line.add(" → ", Style::dim).add(std::string(to_string(*event.state)), state_style(*event.state));
    }
  }
  if (event.hold != Hold::none) line.add(fmt::format(" ({})", to_string(event.hold)), Style::dim);
  if (!note.empty()) line.add(" " + printable(note.substr(0, kNoteShown)) + (note.size() > kNoteShown ? "…" : ""));
  if (!event.error.empty()) line.add(": " + printable(event.error), Style::red);
  return line;
}

std::vector<std::string> next_steps(const store::Run& run) {
  const std::string id = printable(run.id);
  switch (run.state) {
    case RunState::in_doubt:
      return {"Its effects are unknown. Check whether the work was done, then choose:",
              fmt::format("  stint resolve {} --done      the work was done: count the run as succeeded", id),
              fmt::format("  stint resolve {} --rerun     the work was not done: run it again", id),
              fmt::format("  stint resolve {} --discard   either way: count the run as cancelled", id)};
    case RunState::parked:
      if (run.hold != Hold::person) {
        return {fmt::format("  stint answer {}    let it go on now, and every run parked for the same reason", id)};
      }
      return {
          "It waits for a person. When the cause is settled, let it go on, and every run parked for the same reason:",
          fmt::format("  stint answer {}", id), "or end it:", fmt::format("  stint cancel {}", id)};
    case RunState::failed:
    case RunState::cancelled:
    case RunState::expired: return {fmt::format("  stint retry {}    submit it again as a new run", id)};
    default: return {};
  }
}

std::string end_text(const engine::RunView& view) {
  const store::Run& run = view.run;
  std::string text = fmt::format("{} {}", printable(run.id), state_text(run));
  if (run.started_at && run.finished_at) text += " after " + length_text(*run.finished_at - *run.started_at);
  if (view.memo.usage.tokens() > 0) text += ", " + count_text(view.memo.usage.tokens()) + " tokens";
  if (view.memo.usage.cost_micros > 0) text += ", " + cost_text(view.memo.usage);
  const bool says_more = !run.error.empty() && run.error != to_string(run.state);
  if (says_more && run.state != RunState::succeeded) text += ": " + printable(run.error);
  return text;
}

std::string receipt_text(const engine::Receipt& receipt) {
  const store::Run& run = receipt.run.run;
  std::string text = printable(run.id) + ": ";
  if (run.state == RunState::cancelled) {
    text += "cancelled";
  } else if (domain::is_finished(run.state)) {
    text += "has ended, " + std::string(to_string(run.state));
  } else {
    text += state_text(run);
  }
  const domain::RunMemo& memo = receipt.run.memo;
  if (memo.processes_ended > 0) {
    text +=
        fmt::format("; {} ended in {}", some(memo.processes_ended, "process", "processes"), length_text(memo.ending));
  }
  if (memo.streams_closed > 0) text += "; " + some(memo.streams_closed, "stream") + " closed";
  for (const std::string& each : receipt.permits_returned) text += "; permit of " + printable(each) + " returned";
  for (const std::string& each : receipt.permits_held) text += "; still holds " + printable(each);
  if (!receipt.reached.empty()) text += "; and " + some(receipt.reached.size(), "child run") + " with it";
  return text + fmt::format(" ({})", length_text(receipt.time));
}

}  // namespace stint::cli
