#include "limit/homes.hpp"

#include "domain/agent.hpp"

#include <algorithm>
#include <dirent.h>

namespace stint::limit {
namespace {

constexpr std::string_view kLineEnding = ".line";

/// Every limit has a line file from its first use on.
void add_known(const std::string& directory, const std::string& prefix, bool shared, std::vector<HostLimit>& found) {
  DIR* const files = directory.empty() ? nullptr : ::opendir(directory.c_str());
  if (files == nullptr) return;
  while (const dirent* const entry = ::readdir(files)) {
    const std::string_view file = entry->d_name;
    if (!file.ends_with(kLineEnding) || file.size() == kLineEnding.size()) continue;
    HostLimit limit;
    const std::string_view stem = file.substr(0, file.size() - kLineEnding.size());
    const std::string named = prefix.empty() ? domain::limit_of_file_name(stem) : std::string();
    limit.name = named.empty() ? prefix + std::string(stem) : named;
    limit.directory = directory;
    limit.shared = shared;
    limit.capacity = 0;  // unknown, unless it has a capacity file
    found.push_back(std::move(limit));
  }
  ::closedir(files);
}

}  // namespace

Result<HostLimit> Homes::find(const std::string& name, std::uint32_t capacity) const {
  STINT_CHECK(check_name(name));
  const bool agent = name.starts_with("agent:");
  if (agent && agents.empty()) {
    return fail(Errc::invalid,
                "'" + name + "' is the limit of an agent, but the current folder is not in a git repository");
  }
  STINT_CHECK(check_capacity(name, capacity));
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
