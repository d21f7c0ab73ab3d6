/// `stint with NAME[=N]… -- CMD…`: runs any command under host limits. Its exit status is the command's own.
#pragma once

#include "cli/command.hpp"
#include "domain/system.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace stint::cli {

struct WithOptions {
  std::vector<std::string> limits;  ///< NAME[=N]
  std::vector<std::string> command;
  std::uint32_t weight = 1;
  std::string timeout;
  bool no_wait = false;
  std::string label;
  std::string lease = "10s";
  std::string grace = "2s";
  bool no_cgroup = false;
  bool no_inotify = false;
};

class WithCommand {
 public:
  explicit WithCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  /// The command's status; 124 no permit in time, 125 Stint failed, 126 and 127 as env(1), 128+n ended by a signal.
  /// `command`: the words after `--`.
  int run(const domain::System& system, std::vector<std::string> command);

 private:
  Command command_;
  WithOptions options_;
};

}  // namespace stint::cli
