/// `stint logs ID`: prints the output of a run, and follows it.
#pragma once

#include "cli/command.hpp"
#include "domain/system.hpp"

#include <string>

namespace stint::cli {

class LogsCommand {
 public:
  explicit LogsCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run(const domain::System& system);

 private:
  Command command_;
  std::string id_;
  bool follow_ = false;
  bool raw_ = false;
  bool json_ = false;
};

}  // namespace stint::cli
