/// `stint trust`: lets the commands of this checkout run on this machine, or takes that back.
#pragma once

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}

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
  CLI::App* command_;  // owned by the app
  bool list_ = false;
  bool revoke_ = false;
  bool json_ = false;
};

}  // namespace stint::cli
