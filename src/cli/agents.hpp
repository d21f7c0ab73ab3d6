/// `stint agents`: the agents of this project, and what is wrong with their files.
#pragma once

#include "cli/command.hpp"

#include <string>

namespace stint::cli {

class AgentsCommand {
 public:
  /// Adds itself to the command line. Must outlive the parsing.
  explicit AgentsCommand(CLI::App& app);
  AgentsCommand(const AgentsCommand&) = delete;
  AgentsCommand& operator=(const AgentsCommand&) = delete;

  [[nodiscard]] bool chosen() const;
  /// 1 if a file has errors, or if there is no agent of the name that was given.
  int run();

 private:
  Command command_;
  std::string name_;
  bool json_ = false;
};

}  // namespace stint::cli
