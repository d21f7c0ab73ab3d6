#include "limit/host_permits.hpp"

#include "domain/run_id.hpp"
#include "os/cgroup.hpp"
#include "os/process.hpp"
#include "os/terminal.hpp"
#include "os/variables.hpp"

namespace stint::limit {
namespace {

class HeldHostPermits final : public domain::HeldPermits {
 public:
  explicit HeldHostPermits(HostPermit permit) : permit_(std::move(permit)) {}

  Result<> assign(const std::string& mark, const std::string& label) override {
    return permit_.assign(mark, os::cgroup_path(os::delegated_cgroup(), mark), label);
  }
  [[nodiscard]] std::vector<int> entrust() override { return permit_.entrust(); }
  [[nodiscard]] std::optional<std::uint32_t> slot_of(const std::string& limit) const override {
    return permit_.index_of(limit);
  }
  [[nodiscard]] std::vector<std::string> limits() const override { return permit_.limits(); }
  void release() override { permit_.release(); }

 private:
  HostPermit permit_;
};

}  // namespace

HostPermits::HostPermits(Reactor& reactor, const domain::System& system, project::CurrentSnapshot snapshot)
    : system_(system), snapshot_(std::move(snapshot)), limits_(reactor, system) {}

bool HostPermits::needed(const std::string& agent) const {
  return snapshot_()->host_limits.contains(project::agent_of(agent));
}

Task<Result<std::unique_ptr<domain::HeldPermits>>> HostPermits::acquire(
    std::string agent, std::function<void(const domain::WaitReason*)> waits) {
  const auto snapshot = snapshot_();
  agent = std::string(project::agent_of(agent));
  STINT_CO_TRY(std::vector<HostRequest> wanted, requests_of(*snapshot, agent));
  if (wanted.empty()) co_return fail(Errc::invalid, "'" + agent + "' has no limits on this host");
  Claimant who;
  who.run = domain::new_run_id(system_) + ":0";  // not of a run yet: no process carries it
  who.label = agent;
  who.marks = os::mark_parts(os::environment(os::kMarkVariable));
  HostLimits::Options options;
  options.listener = std::move(waits);
  STINT_CO_TRY(HostPermit permit, co_await limits_.acquire(std::move(wanted), std::move(who), std::move(options)));
  co_return std::unique_ptr<domain::HeldPermits>(std::make_unique<HeldHostPermits>(std::move(permit)));
}

}  // namespace stint::limit
