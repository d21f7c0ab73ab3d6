/// Plans the attempts of runs from the current snapshot: the prompt, the working folder, what of the checkout the agent
/// may read, and the environment of its processes.
#pragma once

#include "domain/driver.hpp"
#include "project/snapshot.hpp"
#include "stint/offload.hpp"

#include <functional>
#include <memory>
#include <string>

namespace stint::project {

/// Changes to the environment of this process for its runs, as `os::environment_with` takes them: no run gets the
/// user's token for a daemon, nor the password of the store. `store`: the setting.
[[nodiscard]] std::vector<std::string> secrets_to_withhold(const agent::EnvironmentVariables& environment,
                                                           const std::string& store);

/// Changes for runs in a checkout that is not trusted. PATH has no relative entries, which would find programs in it.
/// Git, which agent CLIs call when they start, uses neither hooks nor a file system monitor of the repository, and
/// ignores submodules, also those with these names, whose own settings would override that.
[[nodiscard]] std::vector<std::string> untrusted_environment(const agent::EnvironmentVariables& environment,
                                                             const std::vector<std::string>& submodules = {});

/// What a model's name means, for a driver that calls models itself: where its calls go, with the key.
struct ResolvedModel {
  domain::ModelEndpoint endpoint;
  Price price;
  std::string key_variable;  ///< of the environment, which has the key; empty: none
};

/// Renders the prompt, checks the run's folder and program, decides what of the checkout the agent may read, and makes
/// the environment of its processes. Reads and makes files for that in `files`, which must outlive the plans. One
/// executor; must outlive its plans.
class AttemptPlanner final : public domain::AttemptPlanner {
 public:
  struct Options {
    /// Further variables of a run's processes: the address of its fleet, and its own token for it. Called on the
    /// thread of the executor.
    std::function<std::vector<std::string>(const domain::WorkOrder&)> environment;
    std::string program;  ///< named on the command line of this process; empty: none
    /// Called on a thread of `files`. Null: drivers that call models can't be planned.
    std::function<Result<ResolvedModel>(const agent::Settings&, const std::string& model)> blocking_resolve_model;
  };
  AttemptPlanner(BlockingPool& files, CurrentSnapshot snapshot, Options options);

  Task<Result<domain::AttemptSpec>> plan(const domain::WorkOrder& order) override;

 private:
  BlockingPool& files_;
  CurrentSnapshot snapshot_;
  Options options_;
};

}  // namespace stint::project
