/// Formats runs, events and limits as text for a terminal. Pure: the time is an argument. Foreign text is made safe
/// (printable.hpp).
#pragma once

#include "cli/demo_text.hpp"
#include "engine/views.hpp"
#include "fleet/fleet.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace stint::cli {

/// In its largest unit: `12s`, `4m`, `3h`, `2d`. A negative age is `0s`.
[[nodiscard]] std::string age_text(Duration age);
/// ", for 5m more", or nothing.
[[nodiscard]] std::string until_text(const std::optional<WallTime>& until, WallTime now);
/// Rounded for reading: `340 ms`, `12s`, `1h30m`.
[[nodiscard]] std::string length_text(Duration length);
/// `$0.12`, `~$0.12` if it is an estimate, `-` if nothing is known.
[[nodiscard]] std::string cost_text(const Usage& usage);
/// `950`, `12.3k`, `1.2M`.
[[nodiscard]] std::string count_text(std::int64_t count);
/// `2026-11-15 23:05:01`, in the time zone of this host.
[[nodiscard]] std::string moment_text(WallTime time);
/// `3 runs`, `1 run`.
[[nodiscard]] std::string some(std::uint64_t count, std::string_view one, std::string_view several = {});

[[nodiscard]] Style state_style(domain::RunState state) noexcept;

/// Aligned rows, two spaces between columns, no padding after the last. `columns`: the maximal width, reached by
/// clipping the column `elastic`; 0: no bound except kElasticMax for that column.
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

/// The table of `ls`: id, agent, state, age, title, cost.
[[nodiscard]] Table runs_table(const std::vector<engine::RunView>& runs, WallTime now);
inline constexpr std::size_t kRunsElastic = 4;  // the title

/// "queued, until its back-off is over"
[[nodiscard]] std::string state_text(const store::Run& run);
/// All reasons why a run waits, or one line that says why it does not. `carried`: some node takes runs.
[[nodiscard]] std::vector<std::string> why_lines(const engine::WhyView& why, WallTime now, bool carried);
/// "tool Bash, 1.2s".
[[nodiscard]] std::string span_text(const domain::Span& span);
/// Where the time of a run went: a sum, then a line per segment.
[[nodiscard]] std::vector<Line> timeline_lines(const engine::Timeline& timeline);
/// `note`: text that the run's owner stored with the event.
[[nodiscard]] Line event_line(const store::Event& event, std::string_view note, WallTime begin);
/// Commands with which a person settles the run; empty if it goes on by itself or succeeded.
[[nodiscard]] std::vector<std::string> next_steps(const store::Run& run);
/// State, time, tokens, cost and error of an ended run, in one line.
[[nodiscard]] std::string end_text(const engine::RunView& view);
/// The receipt of a cancel.
[[nodiscard]] std::string receipt_text(const engine::Receipt& receipt);

}  // namespace stint::cli
