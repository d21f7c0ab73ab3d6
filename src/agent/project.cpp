#include "agent/project.hpp"

#include "agent/files.hpp"
#include "agent/git_files.hpp"

#include <fmt/format.h>

#include <system_error>

namespace stint::agent {
namespace {

namespace fs = std::filesystem;

constexpr int kFoldersUpMax = 256;

/// Sets git's folders if `root` is a checkout; false if it is not.
Result<bool> blocking_enter_checkout(const fs::path& root, Project& project) {
  STINT_TRY(const std::optional<GitFolders> git, blocking_find_git(root));
  if (!git) return false;
  project.root = root;
  project.git_dir = git->git_dir;
  project.common_dir = git->common_dir;
  return true;
}

}  // namespace

Result<Project> blocking_find_project(const fs::path& from) {
  std::error_code error;
  const fs::path start = fs::canonical(from, error);
  if (error == std::errc::no_such_file_or_directory) {
    const std::string which = from == "." ? "the current folder" : "the folder " + from.string();
    return fail(Errc::unavailable, which + " does not exist any more: it was deleted or moved. Change to another (cd)");
  }
  if (error) return fail(Errc::unavailable, fmt::format("{}: {}", from.string(), error.message()));

  Project project;
  std::optional<fs::path> marked;
  fs::path folder = start;
  for (int i = 0; i < kFoldersUpMax; ++i, folder = folder.parent_path()) {
    STINT_TRY(const bool found, blocking_enter_checkout(folder, project));
    if (found) return project;
    if (!marked && (blocking_exists(folder / ".stint") || blocking_exists(folder / "stint.toml"))) marked = folder;
    if (folder == folder.parent_path()) break;
  }
  project.root = marked.value_or(start);
  return project;
}

Result<UserPlaces> user_places(const EnvironmentVariables& environment) {
  const auto place = [&](const char* variable, const char* below_home) -> Result<fs::path> {
    // The specification says to ignore a relative path: it would mean another place in every folder.
    const auto set = environment.find(variable);
    if (set != environment.end() && set->second.starts_with('/')) return fs::path(set->second) / "stint";
    const auto home = environment.find("HOME");
    if (home == environment.end() || !home->second.starts_with('/')) {
      return fail(Errc::invalid, fmt::format("neither {} nor HOME names a folder; set one of them", variable));
    }
    return fs::path(home->second) / below_home / "stint";
  };
  UserPlaces out;
  STINT_TRY(out.config, place("XDG_CONFIG_HOME", ".config"));
  STINT_TRY(out.state, place("XDG_STATE_HOME", ".local/state"));
  return out;
}

}  // namespace stint::agent
