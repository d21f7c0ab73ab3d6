#include "cli/host_homes.hpp"

#include "agent/problem.hpp"
#include "os/memory.hpp"

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
  STINT_TRY(place.project, agent::blocking_find_project(around.folder));
  agent::LoadedSettings loaded = agent::blocking_load_settings(place.project.root, around.environment);
  for (const agent::Problem& problem : loaded.problems) {
    if (problem.severity == agent::Severity::error) return fail(Errc::invalid, describe(problem));
  }
  place.settings = std::move(loaded.settings);
  place.homes.limits = place.settings.limits_dir;
  place.homes.shared = !place.homes.limits.empty();
  if (!place.homes.shared) {
    STINT_TRY(const agent::UserPlaces places, agent::user_places(around.environment));
    place.homes.limits = (places.state / "limits").string();
  }
  place.homes.agents =
      (place.project.is_repository() ? agents_home(place.project) : place.project.root / ".stint" / "semaphores")
          .string();
  return place;
}

std::optional<std::uint32_t> configured_capacity(const agent::Settings& settings, std::string_view name) {
  const auto found = settings.limits.find(name);
  if (found == settings.limits.end()) return std::nullopt;
  return found->second.capacity.value_or(agent::automatic_capacity(os::memory_available()));
}

}  // namespace stint::cli
