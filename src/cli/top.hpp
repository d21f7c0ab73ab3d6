/// `stint top`: the fleet, live on a terminal.
#pragma once

#include "cli/command.hpp"
#include "domain/system.hpp"

namespace stint::cli {

class TopCommand {
 public:
  explicit TopCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run(const domain::System& system);

 private:
  Command command_;
  bool json_ = false;
};

}  // namespace stint::cli
