/// `stint demo agents`: several agents at once, two at a time, against the simulated provider, with the line visible.
/// Needs no key. What is shown is what the engine tells.
#pragma once

#include "cli/command.hpp"
#include "domain/ambient.hpp"

#include <cstdint>
#include <string>

namespace stint::app {

class DemoAgentsCommand {
 public:
  /// Adds itself below `demo`, which must exist.
  explicit DemoAgentsCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  /// 0; 1 if more ran at once than allowed, or something was left behind.
  int run(const domain::Ambient& ambient);

 private:
  cli::Command command_;
  std::uint32_t runs_ = 6;
  std::uint32_t at_once_ = 2;
  bool plain_ = false;
};

}  // namespace stint::app
