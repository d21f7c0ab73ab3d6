/// `stint completions bash|zsh|fish`: prints a completion script. The scripts contain no list of commands: they call
/// the program (cli/complete.hpp), so they fit every version of it.
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
