/// `stint doctor`: checks everything Stint depends on (git, agent CLIs, keys, cgroups, the directories of limits, agent
/// files, settings, trust, the store), with a remedy for each finding. Changes nothing.
#pragma once

#include "cli/command.hpp"
#include "domain/system.hpp"

namespace stint::cli {

class DoctorCommand {
 public:
  explicit DoctorCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  /// 0 if no check failed; warnings do not count.
  int run(const domain::System& system);

 private:
  Command command_;
  bool json_ = false;
};

}  // namespace stint::cli
