/// `stint provider`: the simulated model provider on a loopback port, until Ctrl-C.
#pragma once

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}

namespace stint::provider {

class ProviderCommand {
 public:
  /// Adds itself to the command line. Must outlive the parsing.
  explicit ProviderCommand(CLI::App& app);
  ProviderCommand(const ProviderCommand&) = delete;
  ProviderCommand& operator=(const ProviderCommand&) = delete;

  [[nodiscard]] bool chosen() const;
  /// Runs until SIGINT, SIGTERM or SIGHUP. Exit status: 0, 1 if it could not begin, 2 if a file or address is wrong.
  int run();

 private:
  CLI::App* command_;  // owned by the app
  std::string listen_ = "127.0.0.1:0";
  std::string script_file_, log_file_;
  bool json_ = false;
};

}  // namespace stint::provider
