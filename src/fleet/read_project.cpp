#include "fleet/read_project.hpp"

#include "driver/registry.hpp"
#include "fleet/model_lookup.hpp"
#include "limit/snapshot_limits.hpp"

namespace stint::fleet {

Result<std::shared_ptr<const project::Snapshot>> blocking_read_project(const project::Location& location, bool cluster,
                                                                       const project::Snapshot* before) {
  project::SnapshotPorts ports;
  ports.check_tools = [](const domain::DriverDescriptor& driver, const domain::Agent& agent) {
    const auto permissions = agent.permissions.value_or(domain::Permissions::edit);
    return driver::check_rules(driver, {permissions, agent.tool_names, agent.tool_names_denied});
  };
  ports.find_model = find_model;
  ports.blocking_look_at_limit = limit::blocking_look_at_limit;
  return project::blocking_read_snapshot(location, ports, {.cluster = cluster, .before = before});
}

}  // namespace stint::fleet
