/// `stint ls`: lists runs, newest first.
#pragma once

#include "cli/command.hpp"
#include "domain/system.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace stint::cli {

struct ListOptions {
  std::vector<std::string> states;
  std::string agent, session;
  std::uint32_t limit = 30;
  bool all = false;
  bool json = false;
};

class ListCommand {
 public:
  explicit ListCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run(const domain::System& system);

 private:
  Command command_;
  ListOptions options_;
};

}  // namespace stint::cli
