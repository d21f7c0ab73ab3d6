#include "limit/snapshot_limits.hpp"

#include "limit/homes.hpp"

#include <algorithm>

namespace stint::limit {

Result<project::HostLimitState> blocking_look_at_limit(const project::LimitDirectories& directories,
                                                       const project::HostLimitUse& use) {
  STINT_TRY(const HostLimit limit, Homes(directories).find(use.name, use.capacity));
  project::HostLimitState state;
  state.capacity = capacity_now(limit);
  if (const Result<> usable = check_usable(limit); !usable) state.unusable = usable.error();
  return state;
}

Result<std::vector<HostRequest>> requests_of(const project::Snapshot& snapshot, std::string_view agent) {
  std::vector<HostRequest> requests;
  const auto uses = snapshot.host_limits.find(agent);
  if (uses == snapshot.host_limits.end()) return requests;
  const Homes homes(snapshot.limit_directories);
  for (const project::HostLimitUse& use : uses->second) {
    STINT_TRY(HostLimit limit, homes.find(use.name, use.capacity));
    requests.push_back({std::move(limit), use.weight});
  }
  return requests;
}

bool blocking_limits_usable_again(const project::Snapshot& snapshot) {
  return std::ranges::any_of(snapshot.unusable, [&snapshot](const project::HostLimitUse& use) {
    const auto state = blocking_look_at_limit(snapshot.limit_directories, use);
    return state && !state->unusable;
  });
}

Result<bool> blocking_resize(const project::Snapshot& snapshot, const std::string& name, std::uint32_t capacity) {
  const bool taken = std::ranges::any_of(snapshot.host_limits, [&name](const auto& of_agent) {
    return std::ranges::find(of_agent.second, name, &project::HostLimitUse::name) != of_agent.second.end();
  });
  // A limit of [limits] that no agent takes: other programs of the host may, by `stint with`.
  const bool configured = project::configured_capacity(snapshot.checkout.settings, name) &&
                          !snapshot.cluster_limits.contains(name) && !snapshot.process_limits.contains(name);
  if (!taken && !configured) return false;
  STINT_TRY(const HostLimit limit, Homes(snapshot.limit_directories).find(name, capacity));
  STINT_CHECK(check_capacity(name, capacity));
  STINT_CHECK(resize(limit, capacity));
  return true;
}

}  // namespace stint::limit
