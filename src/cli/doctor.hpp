/// `stint doctor`: looks at everything Stint stands on (git, agent CLIs, keys, cgroups, the directories of limits,
/// agent files, settings, trust, the store) and says what to do about each finding. Changes nothing.
#pragma once

#include "cli/command.hpp"
#include "domain/system.hpp"

namespace stint::cli {

class DoctorCommand {
 public:
  explicit DoctorCommand(CLI::App& app);
  [[nodiscard]] bool chosen() const;
  /// 0 when nothing failed; warnings are allowed.
  int run(const domain::System& system);

 private:
  Command command_;
  bool json_ = false;
};

}  // namespace stint::cli
