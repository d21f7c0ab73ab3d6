#include "fleet/parent_run.hpp"

#include "os/process.hpp"
#include "os/terminal.hpp"

#include <vector>

namespace stint::fleet {

Task<std::string> running_parent(Fleet& fleet) {
  const std::vector<std::string> parts = os::mark_parts(os::environment(os::kMarkVariable));
  if (parts.empty()) co_return {};
  const std::string id = parts.back().substr(0, parts.back().find(':'));
  const auto found = co_await fleet.find(id);
  const bool runs = found && *found && (*found)->run.id == id && (*found)->run.state == domain::RunState::running;
  co_return runs ? id : std::string();
}

}  // namespace stint::fleet
