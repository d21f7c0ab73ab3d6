/// What a person sees of a run that is followed: its words on stdout as they come (byte for byte, unless stdout is a
/// terminal: then without control sequences but colour), everything about it on stderr. On a
/// terminal there is a line at the bottom with state, time, budget left, tokens and cost; elsewhere only what matters
/// later.
#pragma once

#include "cli/environment.hpp"
#include "cli/outlet.hpp"
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
  /// `out`: for the agent's own words.
  RunDisplay(Outlet& out, const Environment& environment, bool quiet);
  ~RunDisplay();
  RunDisplay(const RunDisplay&) = delete;
  RunDisplay& operator=(const RunDisplay&) = delete;

  void show(const store::Event& event, std::string_view note);
  void show_wait(const std::string& why);
  void print(std::string_view text);  ///< the agent's own words
  /// The line at the bottom, again.
  void refresh(const engine::RunView& run, WallTime now);
  void show_result(const engine::RunView& run);
  [[nodiscard]] bool live() const noexcept { return live_; }
  void say(const std::string& text);   ///< a line on stderr
  void warn(const std::string& text);  ///< also to who wanted quiet

 private:
  void clear_line();

  Outlet& out_;
  const bool colour_;
  const bool raw_;   // stdout is no terminal: bytes pass unchanged
  CleanText clean_;  // else
  const bool live_;
  const bool quiet_;
  const int columns_;
  bool drawn_ = false;
  bool printed_ = false;  // words were printed, so the answer need not be
  bool in_line_ = false;  // the last of them had no end of line
  std::string state_ = "starting";
  std::string wait_;  // the last reason why it did not begin
};

}  // namespace stint::cli
