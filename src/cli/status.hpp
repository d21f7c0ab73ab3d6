/// `stint status`: shows the fleet on one screen.
#pragma once

#include "cli/command.hpp"
#include "domain/system.hpp"

namespace stint::cli {

class StatusCommand {
 public:
  explicit StatusCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run(const domain::System& system);

 private:
  Command command_;
  bool json_ = false;
};

}  // namespace stint::cli
