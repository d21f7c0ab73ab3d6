/// `stint pause [NAME]` and `stint resume [NAME|ID]`: hold back new runs, and let them begin again.
#pragma once

#include "cli/command.hpp"
#include "domain/system.hpp"

#include <string>

namespace stint::cli {

class PauseCommand {
 public:
  explicit PauseCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run(const domain::System& system);

 private:
  Command command_;
  std::string name_, length_;
  bool json_ = false;
};

class ResumeCommand {
 public:
  explicit ResumeCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run(const domain::System& system);

 private:
  Command command_;
  std::string name_;
  bool json_ = false;
};

}  // namespace stint::cli
