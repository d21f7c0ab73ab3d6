/// `stint demo fleet`: a daemon with demo agents against the simulated provider, and runs that flow. Needs no key. What
/// is shown is what the fleet tells.
#pragma once

#include "cli/command.hpp"
#include "domain/system.hpp"

#include <cstdint>
#include <string>

namespace stint::app {

class DemoFleetCommand {
 public:
  /// Adds itself below `demo`, which must exist.
  explicit DemoFleetCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const { return command_.chosen(); }
  /// 0; 1 if more ran at once than allowed, or something was left behind.
  int run(const domain::System& system);

 private:
  cli::Command command_;
  std::uint32_t runs_ = 0;
  std::string listen_ = "127.0.0.1:0";
  bool plain_ = false;
};

}  // namespace stint::app
