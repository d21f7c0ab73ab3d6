/// What a person sees of a run: its words on stdout as they come, everything about it on stderr. On a terminal there is
/// a line at the bottom with state, time, budget left, tokens and cost; elsewhere only what matters later.
#pragma once

#include "cli/surroundings.hpp"
#include "engine/foreground.hpp"

#include <string>

namespace stint::cli {

/// `1.2k`, `3.4M`.
[[nodiscard]] std::string short_count(std::int64_t count);
/// `0:07`, `12:30`, `1:02:03`.
[[nodiscard]] std::string clock_text(Duration duration);

class RunDisplay {
 public:
  RunDisplay(const Surroundings& around, bool quiet);
  ~RunDisplay();
  RunDisplay(const RunDisplay&) = delete;
  RunDisplay& operator=(const RunDisplay&) = delete;

  void show(const engine::RunEvent& event);
  /// The line at the bottom, again.
  void refresh(const engine::ForegroundRun& run);
  void show_result(const engine::RunResult& result);
  [[nodiscard]] bool live() const noexcept { return live_; }

 private:
  void say(const std::string& text);  // a line on stderr
  void print(std::string_view text);  // the agent's own words
  void clear_line();

  const bool colour_;
  const bool live_;
  const bool quiet_;
  const int columns_;
  bool drawn_ = false;
  bool printed_ = false;  // words were printed, so the answer need not be
  std::string state_ = "starting";
};

}  // namespace stint::cli
