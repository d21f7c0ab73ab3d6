#include "cli/top_view.hpp"

#include "cli/fleet_text.hpp"
#include "cli/printable.hpp"
#include "cli/status_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stint::cli {
namespace {

constexpr std::size_t kHeldMax = 8;      // bytes of one key
constexpr std::size_t kLimitsShown = 4;  // leaves room for runs in 24 rows
constexpr int kRowsForRuns = 6;          // at least: heading, some runs, footer

Key plain_key(char c) noexcept {
  switch (c) {
    case 'k': return Key::up;
    case 'j': return Key::down;
    case 'c': return Key::cancel;
    case 'd': return Key::drain;
    case 'y':
    case 'Y': return Key::yes;
    case 'q':
    case 'Q':
    case '\x04': return Key::quit;
    default: return Key::other;
  }
}

Key sequence_key(std::string_view text) noexcept {
  if (text == "\033[A" || text == "\033OA") return Key::up;
  if (text == "\033[B" || text == "\033OB") return Key::down;
  if (text == "\033[5~") return Key::page_up;
  if (text == "\033[6~") return Key::page_down;
  return Key::other;
}

/// Bytes of the first key; 0: it is incomplete.
std::size_t key_size(std::string_view text) noexcept {
  if (text[0] != '\033') return 1;
  if (text.size() < 2) return 0;
  if (text[1] == 'O') return text.size() < 3 ? 0 : 3;
  if (text[1] != '[') return 1;
  for (std::size_t i = 2; i < text.size(); ++i) {
    if (text[i] >= 0x40 && text[i] <= 0x7E) return i + 1;
  }
  return text.size() >= kHeldMax ? text.size() : 0;
}

}  // namespace

std::vector<Key> KeyReader::add(std::string_view bytes) {
  held_ += bytes;
  std::vector<Key> keys;
  while (!held_.empty()) {
    const std::size_t size = key_size(held_);
    if (size == 0) break;
    keys.push_back(held_[0] == '\033' ? sequence_key(held_.substr(0, size)) : plain_key(held_[0]));
    held_.erase(0, size);
  }
  return keys;
}

std::vector<engine::RunView> TopView::runs() const {
  std::vector<engine::RunView> all = frame_.running;
  all.insert(all.end(), frame_.waiting.begin(), frame_.waiting.end());
  return all;
}

void TopView::update(TopFrame frame) {
  frame_ = std::move(frame);
  const std::vector<engine::RunView> all = runs();
  const auto found =
      std::ranges::find(all, selected_, [](const engine::RunView& view) -> const std::string& { return view.run.id; });
  // If the selected run is gone, the run in its row is selected.
  at_ = found != all.end() ? static_cast<std::size_t>(found - all.begin())
                           : std::min(at_, all.empty() ? 0 : all.size() - 1);
  selected_ = all.empty() ? std::string() : all[at_].run.id;
}

void TopView::move(std::int64_t by) {
  const std::vector<engine::RunView> all = runs();
  if (all.empty()) return;
  const auto last = static_cast<std::int64_t>(all.size()) - 1;
  at_ = static_cast<std::size_t>(std::clamp<std::int64_t>(static_cast<std::int64_t>(at_) + by, 0, last));
  selected_ = all[at_].run.id;
}

TopView::Action TopView::press(Key key) {
  if (asked_ != Act::none) {
    const Act asked = std::exchange(asked_, Act::none);
    if (key == Key::yes) return {asked, std::exchange(asked_run_, {})};
    message_ = "Not confirmed: nothing was done.";
    return {};
  }
  const auto page = static_cast<std::int64_t>(visible_);
  switch (key) {
    case Key::up: move(-1); break;
    case Key::down: move(1); break;
    case Key::page_up: move(-page); break;
    case Key::page_down: move(page); break;
    case Key::cancel:
      if (selected_.empty()) break;
      asked_ = Act::cancel;
      asked_run_ = selected_;
      break;
    case Key::drain:
      if (frame_.daemon) {
        asked_ = Act::drain;
      } else {
        message_ = "No daemon runs here: nothing to drain.";
      }
      break;
    case Key::quit: return {Act::quit, {}};
    case Key::yes:
    case Key::other: break;
  }
  return {};
}

Line TopView::foot() const {
  if (asked_ == Act::cancel) return Line("Cancel " + printable(asked_run_) + "? y/n", Style::yellow);
  if (asked_ == Act::drain) return Line("Drain the daemon (no new runs, then exit)? y/n", Style::yellow);
  if (!message_.empty()) return Line(message_);
  return Line("↑↓ select   c cancel   d drain   q quit", Style::dim);
}

/// One character per worker: # busy, . idle, d draining, ! stale.
std::vector<Line> TopView::worker_lines() const {
  if (!frame_.status.pool || frame_.status.pool->workers.empty()) return {};
  Line line("  workers  ", Style::dim);
  for (const WorkerHealth& worker : frame_.status.pool->workers) {
    if (worker.stale) {
      line.add("!", Style::red);
    } else if (worker.job) {
      line.add("#", Style::cyan);
    } else {
      line.add(worker.state == WorkerState::draining ? "d" : ".", Style::dim);
    }
  }
  return {line};
}

std::vector<Line> TopView::draw(int columns, int rows, WallTime now) {
  std::vector<Line> lines = summary_lines(frame_.status, frame_.where, frame_.daemon);
  for (Line& line : worker_lines()) lines.push_back(std::move(line));
  for (Line& line : limit_lines(frame_.limits, now, kLimitsShown)) lines.push_back(std::move(line));
  if (const std::string text = advice(frame_.status); !text.empty()) lines.emplace_back("  " + text, Style::yellow);
  const int most_above = std::max(1, rows - kRowsForRuns);
  if (static_cast<int>(lines.size()) > most_above) lines.resize(static_cast<std::size_t>(most_above));
  lines.emplace_back();
  const std::vector<engine::RunView> all = runs();
  const int left = rows - static_cast<int>(lines.size()) - 2;  // the heading and the footer
  visible_ = static_cast<std::size_t>(std::max(1, left));
  if (at_ < first_) first_ = at_;
  if (at_ >= first_ + visible_) first_ = at_ - visible_ + 1;
  if (first_ >= all.size()) first_ = 0;
  const std::vector<Line> table = runs_table(all, now).lines(columns - 2, kRunsElastic);
  lines.push_back(Line("  ").add(table.front()));
  for (std::size_t i = first_; i < std::min(all.size(), first_ + visible_); ++i) {
    Line line(i == at_ ? "> " : "  ", Style::bold);
    lines.push_back(line.add(table[i + 1]));
  }
  if (all.empty()) lines.emplace_back("  No run is running or waiting.", Style::dim);
  while (static_cast<int>(lines.size()) < rows - 1) lines.emplace_back();
  lines.push_back(foot());
  if (static_cast<int>(lines.size()) > rows) lines.resize(static_cast<std::size_t>(std::max(rows, 1)));
  for (Line& line : lines) line = line.clipped(columns, true);
  return lines;
}

}  // namespace stint::cli
