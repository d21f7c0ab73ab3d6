/// `stint limits [NAME[=N]…]`: lists host limits with holders and waiters; `NAME=N` resizes one while it is in use.
#pragma once

#include "cli/command.hpp"
#include "domain/system.hpp"

#include <string>
#include <vector>

namespace stint::cli {

class LimitsCommand {
 public:
  explicit LimitsCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run(const domain::System& system);

 private:
  Command command_;
  std::vector<std::string> names_;
  bool json_ = false, reset_ = false;
};

}  // namespace stint::cli
