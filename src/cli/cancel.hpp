/// `stint cancel ID…`: cancels runs, and returns when none of their processes is left.
#pragma once

#include "cli/command.hpp"
#include "domain/system.hpp"

#include <string>
#include <vector>

namespace stint::cli {

class CancelCommand {
 public:
  explicit CancelCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run(const domain::System& system);

 private:
  Command command_;
  std::vector<std::string> ids_;
  bool json_ = false;
};

}  // namespace stint::cli
