/// The host permits of an engine's runs: lock files of this host, for the limits that the current snapshot assigns to
/// the run's agent. Own thread only; must outlive its waits.
#pragma once

#include "domain/driver.hpp"
#include "domain/system.hpp"
#include "limit/snapshot_limits.hpp"

#include <functional>
#include <memory>
#include <string>

namespace stint::limit {

class HostPermits final : public domain::Permits {
 public:
  HostPermits(Reactor& reactor, const domain::System& system, project::CurrentSnapshot snapshot);

  [[nodiscard]] bool needed(const std::string& agent) const override;
  Task<Result<std::unique_ptr<domain::HeldPermits>>> acquire(
      std::string agent, std::function<void(const domain::WaitReason*)> waits) override;

 private:
  const domain::System& system_;
  project::CurrentSnapshot snapshot_;
  HostLimits limits_;
};

}  // namespace stint::limit
