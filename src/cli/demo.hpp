/// `stint demo`: shows a semaphore at work. On a terminal an animation; elsewhere one line per event.
#pragma once

#include "cli/command.hpp"
#include "cli/demo_script.hpp"

#include <string>

namespace stint::cli {

class DemoCommand {
 public:
  /// Adds itself to the command line. Must outlive the parsing.
  explicit DemoCommand(CLI::App& app);
  DemoCommand(const DemoCommand&) = delete;
  DemoCommand& operator=(const DemoCommand&) = delete;

  [[nodiscard]] bool chosen() const;
  /// Returns the exit status: 0, 1 if the limit was ever exceeded, 128 + n if stopped by signal n.
  int run();

 private:
  Command command_;
  std::string capacity_, workers_, seconds_, seed_, speed_;  // as written; validated by the parser
  bool json_ = false;
  bool plain_ = false;
};

/// Whether a terminal with these settings shows UTF-8. The locale decides (LC_ALL, LC_CTYPE, LANG); where none is set,
/// the terminal's kind.
struct TerminalSettings {
  std::string locale;
  std::string term;
};
[[nodiscard]] bool shows_utf8(const TerminalSettings& settings);

}  // namespace stint::cli
