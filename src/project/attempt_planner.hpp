/// Plans the attempts of runs from the snapshot in force: what the agent is told, where it works, what of the checkout
/// it may read, and the environment of its processes.
#pragma once

#include "domain/driver.hpp"
#include "project/snapshot.hpp"

#include <functional>
#include <memory>
#include <string>

namespace stint::project {

/// Changes to the environment of this process for its runs, as `os::environment_with` takes them: a user's token for a
/// daemon and the password of the store are Stint's, and no run gets them. `store`: the setting.
[[nodiscard]] std::vector<std::string> secrets_to_withhold(const agent::EnvironmentVariables& environment,
                                                           const std::string& store);

/// Changes for runs in a checkout that is not trusted: no relative entries of PATH, which would find programs in it;
/// and git, which agent CLIs call when they start, uses neither hooks nor a file system monitor of the repository, and
/// looks into no submodule, those of these names included, whose own settings would say otherwise.
[[nodiscard]] std::vector<std::string> untrusted_environment(const agent::EnvironmentVariables& environment,
                                                             const std::vector<std::string>& submodules = {});

/// Plans attempts from the checkout: renders the prompt, checks the run's folder and program, decides what of the
/// checkout the agent may read, and gives its processes their environment.
class AttemptPlanner final : public domain::AttemptPlanner {
 public:
  struct Options {
    /// Further variables of a run's processes: the address of its fleet, and its own token for it.
    std::function<std::vector<std::string>(const domain::WorkOrder&)> environment;
    std::string program;  ///< named on the command line of this process; empty: none
  };
  AttemptPlanner(CurrentSnapshot snapshot, Options options);

  Result<domain::AttemptSpec> plan(const domain::WorkOrder& order) override;

 private:
  Result<> add_environment(domain::AttemptSpec& spec, const Snapshot& snapshot, const domain::Agent& agent,
                           const domain::WorkOrder& order) const;

  CurrentSnapshot snapshot_;
  Options options_;
};

}  // namespace stint::project
