/// `stint cost`: what runs have used, by agent, day or run.
#pragma once

#include "cli/command.hpp"
#include "domain/system.hpp"

#include <string>

namespace stint::cli {

struct CostOptions {
  std::string by = "agent", since;
  bool json = false;
};

class CostCommand {
 public:
  explicit CostCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run(const domain::System& system);

 private:
  Command command_;
  CostOptions options_;
};

}  // namespace stint::cli
