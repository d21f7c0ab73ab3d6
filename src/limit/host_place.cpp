#include "limit/host_place.hpp"

#include "project/limit_settings.hpp"

#include <algorithm>

namespace stint::limit {

Result<HostPlace> blocking_find_host_place(const project::Location& location) {
  HostPlace place;
  STINT_TRY(project::Checkout found, project::blocking_read_checkout(location));
  place.project = std::move(found.project);
  place.settings = std::move(found.settings);
  place.warnings = std::move(found.warnings);
  STINT_TRY(project::LimitDirectories directories,
            project::blocking_find_limit_directories(place.project, place.settings, location.variables));
  place.homes = Homes(std::move(directories));
  return place;
}

std::vector<HostLimit> blocking_all_limits(const Homes& homes, const agent::Settings& settings) {
  std::vector<HostLimit> limits = homes.known();
  for (HostLimit& limit : limits) limit.capacity = project::configured_capacity(settings, limit.name).value_or(0);
  for (const auto& [name, setting] : settings.limits) {
    // File names have '.' for the ':' of a name; only the configuration has the original.
    std::string in_files = name;
    std::ranges::replace(in_files, ':', '.');
    std::erase_if(limits, [&](const HostLimit& limit) {
      return limit.name == name || (limit.stem() == in_files && !limit.name.starts_with("agent:"));
    });
    if (project::counts_calls(settings, name)) continue;
    auto limit = homes.find(name, project::configured_capacity(settings, name).value_or(1));
    if (limit) limits.push_back(std::move(*limit));
  }
  std::ranges::sort(limits, {}, &HostLimit::name);
  return limits;
}

}  // namespace stint::limit
