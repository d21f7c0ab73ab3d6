/// `stint show ID` and `stint why ID`: show everything about a run, and why it waits.
#pragma once

#include "cli/command.hpp"
#include "domain/system.hpp"

#include <string>

namespace stint::cli {

class ShowCommand {
 public:
  explicit ShowCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run(const domain::System& system);

 private:
  Command command_;
  std::string id_;
  bool json_ = false;
};

class WhyCommand {
 public:
  explicit WhyCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run(const domain::System& system);

 private:
  Command command_;
  std::string id_;
  bool json_ = false;
};

}  // namespace stint::cli
