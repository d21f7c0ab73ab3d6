/// `stint scale` and `stint drain`: set the daemon's number of workers; end the daemon in an orderly way.
#pragma once

#include "cli/command.hpp"
#include "domain/system.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace stint::cli {

class ScaleCommand {
 public:
  explicit ScaleCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run(const domain::System& system);

 private:
  Command command_;
  std::optional<std::int64_t> workers_, min_, max_;
  bool json_ = false;
};

class DrainCommand {
 public:
  explicit DrainCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  int run(const domain::System& system);

 private:
  Command command_;
  std::string timeout_;
  bool hurry_ = false;
  bool wait_ = false;
  bool json_ = false;
};

}  // namespace stint::cli
