/// `stint provider`: the simulated model provider on a loopback port, until Ctrl-C.
#pragma once

#include "cli/command.hpp"

#include <string>

namespace stint::cli {

class ProviderCommand {
 public:
  /// Adds itself to the command line. Must outlive the parsing.
  explicit ProviderCommand(CLI::App& app);
  ProviderCommand(const ProviderCommand&) = delete;
  ProviderCommand& operator=(const ProviderCommand&) = delete;

  [[nodiscard]] bool chosen() const;
  /// Runs until SIGINT, SIGTERM or SIGHUP. Exit status: 0, 1 if it could not start, 2 if a file or address is wrong.
  int run();

 private:
  Command command_;
  std::string listen_ = "127.0.0.1:0";
  std::string script_file_, log_file_;
  bool json_ = false;
};

}  // namespace stint::cli
