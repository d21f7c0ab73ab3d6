/// `stint ls`: lists runs, newest first.
#pragma once

#include "cli/command.hpp"
#include "cli/filter_options.hpp"
#include "domain/system.hpp"

#include <cstdint>

namespace stint::cli {

struct ListOptions {
  FilterOptions filter;
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
