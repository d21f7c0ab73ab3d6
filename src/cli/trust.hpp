/// `stint trust`: lets the commands of this checkout run on this machine, lists what is trusted, or revokes it.
#pragma once

#include "cli/command.hpp"

#include <string>

namespace stint::cli {

class TrustCommand {
 public:
  /// Adds itself to the command line. Must outlive the parsing.
  explicit TrustCommand(CLI::App& app);
  TrustCommand(const TrustCommand&) = delete;
  TrustCommand& operator=(const TrustCommand&) = delete;

  [[nodiscard]] bool chosen() const;
  int run();

 private:
  Command command_;
  bool list_ = false;
  bool revoke_ = false;
  bool json_ = false;
};

}  // namespace stint::cli
