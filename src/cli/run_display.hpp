/// Displays a run that is followed: its output on stdout (unchanged; on a terminal without control sequences other than
/// colour), everything about it on stderr. On a terminal a status line shows state, time, budget left, tokens and cost;
/// elsewhere only lines worth keeping are printed.
#pragma once

#include "cli/environment.hpp"
#include "cli/output_buffer.hpp"
#include "cli/printable.hpp"
#include "engine/views.hpp"
#include "fleet/fleet.hpp"

#include <string>
#include <string_view>

namespace stint::cli {

/// `1.2k`, `3.4M`.
[[nodiscard]] std::string short_count(std::int64_t count);
/// `0:07`, `12:30`, `1:02:03`.
[[nodiscard]] std::string clock_text(Duration duration);

class RunDisplay {
 public:
  /// `out`: for the agent's output.
  RunDisplay(OutputBuffer& out, const Environment& environment, bool quiet);
  ~RunDisplay();
  RunDisplay(const RunDisplay&) = delete;
  RunDisplay& operator=(const RunDisplay&) = delete;

  void show(const store::Event& event, std::string_view note);
  void show_wait(const std::string& why);
  void print(std::string_view text);  ///< the agent's output
  /// Draws the status line again.
  void refresh(const engine::RunView& run, WallTime now);
  void show_result(const engine::RunView& run);
  [[nodiscard]] bool live() const noexcept { return live_; }
  void say(const std::string& text);   ///< a line on stderr
  void warn(const std::string& text);  ///< also with --quiet

 private:
  void clear_line();

  OutputBuffer& out_;
  const bool colour_;
  const bool raw_;   // stdout is not a terminal: bytes pass unchanged
  CleanText clean_;  // for a terminal
  const bool live_;
  const bool quiet_;
  const int columns_;
  bool drawn_ = false;
  bool printed_ = false;  // output was printed, so the result text need not be
  bool in_line_ = false;  // the last output did not end its line
  std::string state_ = "starting";
  std::string wait_;  // the last reason why the run did not begin
};

}  // namespace stint::cli
