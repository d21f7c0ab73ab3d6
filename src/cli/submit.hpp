/// `stint submit`: submits one run to the fleet, or one per line of a file.
#pragma once

#include "cli/budget_options.hpp"
#include "cli/command.hpp"
#include "domain/system.hpp"

#include <string>
#include <vector>

namespace stint::cli {

struct SubmitOptions {
  std::vector<std::string> words;  ///< AGENT, then its arguments
  std::string prompt, session, key, driver, model;
  std::string deadline, delay;
  std::string priority;
  BudgetOptions budget;
  std::string each;  ///< a file, or -
  bool one_budget = false;
  bool wait = false;
  bool no_wait = false;
  bool json = false;
};

class SubmitCommand {
 public:
  explicit SubmitCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run(const domain::System& system);

 private:
  Command command_;
  SubmitOptions options_;
};

}  // namespace stint::cli
