/// `stint cancel ID…`: cancels runs, by id or by filter, and returns when none of their processes is left.
#pragma once

#include "cli/command.hpp"
#include "cli/filter_options.hpp"
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
  FilterOptions filter_;
  bool all_ = false, yes_ = false, json_ = false;
};

}  // namespace stint::cli
