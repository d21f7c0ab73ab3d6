/// `stint store stats | check | migrate | export | import`: counts, checks, migrates and moves the store.
#pragma once

#include "cli/command.hpp"
#include "domain/system.hpp"

#include <string>

namespace stint::cli {

class StoreCommand {
 public:
  explicit StoreCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run(const domain::System& system);

 private:
  Command command_, stats_, check_, migrate_, export_, import_;
  std::string to_ = "-", from_;
  bool json_ = false;
};

}  // namespace stint::cli
