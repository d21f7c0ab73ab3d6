/// What an engine of a real process is made of: permits that are lock files of this host, and a driver that starts
/// agents' processes under wardens.
#pragma once

#include "cli/book.hpp"
#include "domain/ambient.hpp"
#include "domain/driver.hpp"
#include "driver/process_attempt.hpp"
#include "driver/secret_mask.hpp"
#include "driver/survivors.hpp"
#include "limit/host_limits.hpp"

#include <functional>
#include <memory>
#include <set>
#include <string>

namespace stint::cli {

/// Changes to the environment of this process for its runs, as `os::environment_with` takes them: a user's token for a
/// daemon and the password of the store are Stint's, and no run gets them. `store`: the setting.
[[nodiscard]] std::vector<std::string> secrets_to_withhold(const agent::Environment& environment,
                                                           const std::string& store);

/// Changes for runs in a checkout that is not trusted: no relative entries of PATH, which would find programs in it;
/// and git, which agent CLIs call when they start, uses neither hooks nor a file system monitor of the repository, and
/// looks into no submodule, those of these names included, whose own settings would say otherwise.
[[nodiscard]] std::vector<std::string> untrusted_environment(const agent::Environment& environment,
                                                             const std::vector<std::string>& submodules = {});

/// The reading that counts now.
using CurrentReading = std::function<std::shared_ptr<const Reading>()>;

class HostPermits final : public domain::Permits {
 public:
  HostPermits(Reactor& reactor, const domain::Ambient& ambient, CurrentReading reading);

  [[nodiscard]] bool needed(const std::string& agent) const override;
  Task<Result<std::unique_ptr<domain::HeldPermits>>> acquire(std::string agent,
                                                             std::function<void(std::string)> waits) override;

 private:
  const domain::Ambient& ambient_;
  CurrentReading reading_;
  limit::HostLimits limits_;
};

class ProcessDriver final : public domain::Driver {
 public:
  struct Options {
    Duration grace = std::chrono::seconds(5);
    /// Further variables of a run's processes: where its fleet is, and its own key to it.
    std::function<std::vector<std::string>(const domain::WorkOrder&)> environment;
    std::string program;                            ///< that the command line of this process names; empty: none
    driver::SecretMask mask;                        ///< of what must not be seen in what agents say
    std::function<void(const std::string&)> heard;  ///< is told what agents say, as it comes
  };
  ProcessDriver(Reactor& reactor, CurrentReading reading, Options options);

  Result<std::unique_ptr<domain::Work>> begin(domain::WorkOrder order, domain::Work::Listener listener) override;
  [[nodiscard]] std::string choose_conversation(const domain::WorkOrder& order) override;
  [[nodiscard]] domain::Survivors& survivors() noexcept { return survivors_; }
  /// True: who hears what agents say can't take more for now; false: again.
  void hold(bool held);

 private:
  CurrentReading reading_;
  Options options_;
  driver::HostSurvivors survivors_;
  driver::Wardens wardens_;
  std::set<domain::Work*> works_;
  bool held_ = false;
};

}  // namespace stint::cli
