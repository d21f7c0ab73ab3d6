/// `stint run AGENT [value…] [key=value…]` and `stint run -p "TEXT"`: submits a run and follows it to its end, under
/// its permits and its budget. Without a daemon this process carries the run.
#pragma once

#include "cli/budget_options.hpp"
#include "cli/command.hpp"
#include "domain/system.hpp"

#include <string>
#include <vector>

namespace stint::cli {

struct RunOptions {
  std::vector<std::string> words;  ///< AGENT, then its arguments
  std::string prompt;              ///< of -p
  std::string driver, model, program, session;
  std::string deadline;
  BudgetOptions budget;
  bool no_wait = false;
  bool json = false;
  bool quiet = false;
};

class RunCommand {
 public:
  explicit RunCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  /// 0 done, 1 failed, 2 usage, 3 refused, 4 budget or deadline, 5 cancelled, 6 in doubt, 128+n by a signal.
  int run(const domain::System& system);

 private:
  Command command_;
  RunOptions options_;
};

}  // namespace stint::cli
