/// Where a project begins, and where the places of a user are. Found by looking, without running git: a checkout is a
/// folder with `.git`; in a worktree of it that is a file which leads to the repository, and the repository names the
/// worktree back (`git_files.hpp`).
#pragma once

#include "stint/error.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace stint::agent {

using EnvironmentVariables = std::map<std::string, std::string, std::less<>>;

struct Project {
  std::filesystem::path root;                       ///< the checkout; outside a repository the folder with .stint
  std::optional<std::filesystem::path> git_dir;     ///< of this checkout; absent outside a repository
  std::optional<std::filesystem::path> common_dir;  ///< of the repository, shared by all its worktrees

  [[nodiscard]] bool is_repository() const noexcept { return common_dir.has_value(); }
  [[nodiscard]] bool is_worktree() const { return is_repository() && *git_dir != *common_dir; }
  /// What stands for the whole project, in whichever worktree one is: the repository, else the folder.
  [[nodiscard]] const std::filesystem::path& identity() const noexcept { return common_dir ? *common_dir : root; }
};

/// From `from` upwards: the first checkout; if there is none, the first folder with `.stint` or `stint.toml`; else
/// `from` itself. All paths are real. Fails if `from` can't be entered, if a `.git` file leads nowhere, or if it names
/// a repository that does not name its folder back.
[[nodiscard]] Result<Project> blocking_find_project(const std::filesystem::path& from);

/// A user's places: `$XDG_CONFIG_HOME/stint` and `$XDG_STATE_HOME/stint`, else below `$HOME`. Fails without `HOME`.
struct UserPlaces {
  std::filesystem::path config;
  std::filesystem::path state;
};
[[nodiscard]] Result<UserPlaces> user_places(const EnvironmentVariables& environment);

}  // namespace stint::agent
