/// `stint completions bash|zsh|fish`: prints the script that lets a shell complete `stint`. The scripts hold no list of
/// commands: they ask the program (cli/complete.hpp), and so are right for every version of it.
#pragma once

#include "cli/command.hpp"

#include <string>

namespace stint::cli {

class CompletionsCommand {
 public:
  explicit CompletionsCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run();

 private:
  Command command_;
  std::string shell_;
};

}  // namespace stint::cli
