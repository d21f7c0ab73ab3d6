#include "limit/homes.hpp"

#include "os/terminal.hpp"

#include <algorithm>
#include <dirent.h>
#include <map>

namespace stint::limit {
namespace {

constexpr std::string_view kLineEnding = ".line";

/// Every limit has a line, from its first use on.
void add_known(const std::string& directory, const std::string& prefix, bool shared, std::vector<HostLimit>& found) {
  DIR* const files = directory.empty() ? nullptr : ::opendir(directory.c_str());
  if (files == nullptr) return;
  while (const dirent* const entry = ::readdir(files)) {
    const std::string_view file = entry->d_name;
    if (!file.ends_with(kLineEnding) || file.size() == kLineEnding.size()) continue;
    HostLimit limit;
    limit.name = prefix + std::string(file.substr(0, file.size() - kLineEnding.size()));
    limit.directory = directory;
    limit.shared = shared;
    limit.capacity = 0;  // unknown but for its capacity file
    found.push_back(std::move(limit));
  }
  ::closedir(files);
}

}  // namespace

Result<Homes> Homes::from_environment(const std::string& git_common_dir) {
  Homes homes;
  homes.limits = os::environment("STINT_LIMITS_DIR");
  homes.shared = !homes.limits.empty();
  if (homes.limits.empty()) {
    std::string state = os::environment("XDG_STATE_HOME");
    const std::string home = os::environment("HOME");
    if (!state.starts_with('/')) state = home.starts_with('/') ? home + "/.local/state" : "";
    if (state.empty()) {
      return fail(Errc::invalid, "no place for limits: set HOME, XDG_STATE_HOME or STINT_LIMITS_DIR to a full path");
    }
    homes.limits = state + "/stint/limits";
  }
  if (!git_common_dir.empty()) homes.agents = git_common_dir + "/stint/semaphores";
  return homes;
}

Result<HostLimit> Homes::find(const std::string& name, std::uint32_t capacity) const {
  STINT_CHECK(check_name(name));
  const bool agent = name.starts_with("agent:");
  if (agent && agents.empty()) {
    return fail(Errc::invalid, "'" + name + "' is the limit of an agent, and this is not inside a git repository");
  }
  if (capacity == 0 || capacity > kHostCapacityMax) {
    return fail(Errc::invalid, name + ": a capacity is from 1 to " + std::to_string(kHostCapacityMax) + ", not " +
                                   std::to_string(capacity));
  }
  HostLimit limit;
  limit.name = name;
  limit.directory = agent ? agents : limits;
  limit.capacity = capacity;
  limit.shared = !agent && shared;
  return limit;
}

std::vector<HostLimit> Homes::known() const {
  std::vector<HostLimit> found;
  add_known(agents, "agent:", false, found);
  add_known(limits, "", shared, found);
  std::ranges::sort(found, {}, &HostLimit::name);
  return found;
}

}  // namespace stint::limit
