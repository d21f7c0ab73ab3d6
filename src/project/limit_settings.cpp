#include "project/limit_settings.hpp"

#include "os/resources.hpp"

namespace stint::project {
namespace {

/// The directory of coven if the checkout uses coven: both tools then share one capacity.
std::filesystem::path agents_home(const agent::Project& project) {
  std::error_code error;
  const bool coven = std::filesystem::is_directory(project.root / ".coven", error) &&
                     !std::filesystem::is_directory(project.root / ".stint", error);
  return *project.common_dir / (coven ? "coven" : "stint") / "semaphores";
}

}  // namespace

Result<LimitDirectories> blocking_find_limit_directories(const agent::Project& project, const agent::Settings& settings,
                                                         const agent::EnvironmentVariables& variables) {
  LimitDirectories found;
  found.limits = settings.limits_dir;
  found.shared = !found.limits.empty();
  if (!found.shared) {
    STINT_TRY(const agent::UserPlaces places, agent::user_places(variables));
    found.limits = (places.state / "limits").string();
  }
  found.agents = (project.is_repository() ? agents_home(project) : project.root / ".stint" / "semaphores").string();
  return found;
}

std::optional<std::uint32_t> configured_capacity(const agent::Settings& settings, std::string_view name) {
  const auto found = settings.limits.find(name);
  if (found == settings.limits.end()) return std::nullopt;
  return found->second.capacity.value_or(agent::automatic_capacity(os::memory_available()));
}

bool counts_calls(const agent::Settings& settings, std::string_view name) {
  const auto found = settings.limits.find(name);
  return name != "host" && found != settings.limits.end() && found->second.reach == agent::Reach::process;
}

}  // namespace stint::project
