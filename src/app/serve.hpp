/// `stint serve`: the fleet as a daemon.
#pragma once

#include "cli/command.hpp"
#include "domain/system.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stint::app {

class ServeCommand {
 public:
  explicit ServeCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const { return command_.chosen(); }
  int run(const domain::System& system);

 private:
  cli::Command command_;
  std::string listen_;  // empty: kListen, or a free port if that is taken
  std::vector<std::string> hosts_;
  std::optional<std::int64_t> workers_;
  bool no_token_ = false;
  bool json_ = false;
  std::string log_format_ = "text", log_level_ = "info";
};

}  // namespace stint::app
