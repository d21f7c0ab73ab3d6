/// `stint agents`: lists the agents of this project, and problems of their files.
#pragma once

#include "cli/command.hpp"
#include "domain/system.hpp"

#include <string>

namespace stint::cli {

class AgentsCommand {
 public:
  /// Adds itself to the command line. Must outlive the parsing.
  explicit AgentsCommand(CLI::App& app);
  AgentsCommand(const AgentsCommand&) = delete;
  AgentsCommand& operator=(const AgentsCommand&) = delete;

  [[nodiscard]] bool chosen() const;
  /// 1 if a file has errors, or the named agent does not exist.
  int run(const domain::System& system);

 private:
  Command command_;
  std::string name_;
  bool json_ = false;
};

}  // namespace stint::cli
