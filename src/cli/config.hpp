/// `stint config`: shows every setting, its value and where it comes from.
#pragma once

#include "cli/command.hpp"

#include <string>

namespace stint::cli {

class ConfigCommand {
 public:
  /// Adds itself to the command line. Must outlive the parsing.
  explicit ConfigCommand(CLI::App& app);
  ConfigCommand(const ConfigCommand&) = delete;
  ConfigCommand& operator=(const ConfigCommand&) = delete;

  [[nodiscard]] bool chosen() const;
  /// 1 if a value is wrong, or the key does not exist.
  int run();

 private:
  Command command_;
  std::string key_;
  bool json_ = false;
};

}  // namespace stint::cli
