#include "cli/host_homes.hpp"

#include "os/resources.hpp"

#include <algorithm>

namespace stint::cli {
namespace {

/// Beside coven's own, if the checkout is one of coven's: both tools then share one cap.
std::filesystem::path agents_home(const agent::Project& project) {
  std::error_code error;
  const bool coven = std::filesystem::is_directory(project.root / ".coven", error) &&
                     !std::filesystem::is_directory(project.root / ".stint", error);
  return *project.common_dir / (coven ? "coven" : "stint") / "semaphores";
}

}  // namespace

Result<HostPlace> blocking_find_host_place(const Surroundings& around) {
  HostPlace place;
  STINT_TRY(ProjectSettings found, blocking_find_settings(around));
  place.project = std::move(found.project);
  place.settings = std::move(found.settings);
  place.warnings = std::move(found.warnings);
  STINT_TRY(place.homes, blocking_find_homes(place.project, place.settings, around.environment));
  return place;
}

Result<limit::Homes> blocking_find_homes(const agent::Project& project, const agent::Settings& settings,
                                         const agent::Environment& environment) {
  limit::Homes homes;
  homes.limits = settings.limits_dir;
  homes.shared = !homes.limits.empty();
  if (!homes.shared) {
    STINT_TRY(const agent::UserPlaces places, agent::user_places(environment));
    homes.limits = (places.state / "limits").string();
  }
  homes.agents = (project.is_repository() ? agents_home(project) : project.root / ".stint" / "semaphores").string();
  return homes;
}

std::optional<std::uint32_t> configured_capacity(const agent::Settings& settings, std::string_view name) {
  const auto found = settings.limits.find(name);
  if (found == settings.limits.end()) return std::nullopt;
  return found->second.capacity.value_or(agent::automatic_capacity(os::memory_available()));
}

std::vector<limit::HostLimit> blocking_all_limits(const limit::Homes& homes, const agent::Settings& settings) {
  std::vector<limit::HostLimit> limits = homes.known();
  for (limit::HostLimit& limit : limits) limit.capacity = configured_capacity(settings, limit.name).value_or(0);
  for (const auto& [name, setting] : settings.limits) {
    // A name with ':' has '.' in its files' names, and only the configuration knows which it was.
    std::string in_files = name;
    std::ranges::replace(in_files, ':', '.');
    std::erase_if(limits, [&](const limit::HostLimit& limit) {
      return limit.name == name || (limit.stem() == in_files && !limit.name.starts_with("agent:"));
    });
    auto limit = homes.find(name, configured_capacity(settings, name).value_or(1));
    if (limit) limits.push_back(std::move(*limit));
  }
  std::ranges::sort(limits, {}, &limit::HostLimit::name);
  return limits;
}

}  // namespace stint::cli
