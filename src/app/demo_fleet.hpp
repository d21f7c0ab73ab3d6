/// `stint demo fleet`: a daemon with demo agents against the simulated provider, with a stream of runs. Needs no key.
/// Shows only what the fleet reports.
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
  /// 0; 1 if more runs than allowed ran at once, or something was left behind.
  int run(const domain::System& system);

 private:
  cli::Command command_;
  std::uint32_t runs_ = 0;
  std::string listen_ = "127.0.0.1:0";
  bool plain_ = false;
};

}  // namespace stint::app
