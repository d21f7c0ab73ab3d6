/// Runs, events and limits in words, for a terminal. Pure: the time is an argument, and all text of others is made
/// safe.
#pragma once

#include "cli/demo_text.hpp"
#include "fleet/fleet.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace stint::cli {

/// In its largest unit: `12s`, `4m`, `3h`, `2d`. What lies ahead is `0s`.
[[nodiscard]] std::string age_text(Duration age);
/// " until …", or nothing.
[[nodiscard]] std::string until_text(const std::optional<WallTime>& until, WallTime now);
/// To be read, not compared: `340 ms`, `12s`, `1h30m`.
[[nodiscard]] std::string length_text(Duration length);
/// `$0.12`, `~$0.12` if it is an estimate, `-` if nothing is known.
[[nodiscard]] std::string cost_text(const Usage& usage);
/// `950`, `12.3k`, `1.2M`.
[[nodiscard]] std::string count_text(std::int64_t count);
/// `2026-11-15 23:05:01`, by the clock on the wall of this host.
[[nodiscard]] std::string moment_text(WallTime time);
/// `3 runs`, `1 run`.
[[nodiscard]] std::string some(std::uint64_t count, std::string_view one, std::string_view several = {});

[[nodiscard]] Style state_style(domain::RunState state) noexcept;

/// Rows of one width, two spaces between columns; the last is not filled up. `columns`: what the whole may take, by
/// shortening the column `elastic`; 0: as much as it likes, but for that column.
class Table {
 public:
  explicit Table(std::vector<std::string> heads, std::vector<bool> right = {});
  void add(std::vector<Line> cells);
  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }
  [[nodiscard]] std::vector<Line> lines(int columns, std::size_t elastic) const;

 private:
  std::vector<std::string> heads_;
  std::vector<bool> right_;
  std::vector<std::vector<Line>> rows_;
};

/// Of `ls`: id, agent, state, age, title, cost.
[[nodiscard]] Table runs_table(const std::vector<engine::RunView>& runs, WallTime now);
inline constexpr std::size_t kRunsElastic = 4;  // the title

/// "queued, until its back-off is over"
[[nodiscard]] std::string state_text(const store::Run& run);
/// Why it does not wait, or all its reasons.
[[nodiscard]] std::vector<std::string> why_lines(const engine::WhyView& why, WallTime now, bool carried);
/// "tool Bash, 1.2s".
[[nodiscard]] std::string span_text(const domain::Span& span);
/// `note`: what the owner of the run wrote with it.
[[nodiscard]] Line event_line(const store::Event& event, std::string_view note, WallTime begin);
/// What a person can do about it; nothing if it goes on by itself, or is done.
[[nodiscard]] std::vector<std::string> next_steps(const store::Run& run);
/// How a run ended, and at what price, in one line.
[[nodiscard]] std::string end_text(const engine::RunView& view);
/// The receipt of a cancel.
[[nodiscard]] std::string receipt_text(const engine::Receipt& receipt);

}  // namespace stint::cli
