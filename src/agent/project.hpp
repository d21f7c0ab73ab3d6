/// Finds the root of a project, and the folders of a user. Reads files only, without running git: a checkout is a
/// folder with `.git`; in a linked worktree that is a file which points to the repository, and the repository names the
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
  /// The identity of the project, the same in all its worktrees: the repository, else the folder.
  [[nodiscard]] const std::filesystem::path& identity() const noexcept { return common_dir ? *common_dir : root; }
};

/// Searches from `from` upwards: the first checkout; if there is none, the first folder with `.stint` or `stint.toml`;
/// else `from` itself. All paths are real. Fails if `from` can't be entered, if the target of a `.git` file does not
/// exist, or if it names a repository that does not name its folder back.
[[nodiscard]] Result<Project> blocking_find_project(const std::filesystem::path& from);

/// A user's folders: `$XDG_CONFIG_HOME/stint` and `$XDG_STATE_HOME/stint`, else below `$HOME`. Fails without `HOME`.
struct UserPlaces {
  std::filesystem::path config;
  std::filesystem::path state;
};
[[nodiscard]] Result<UserPlaces> user_places(const EnvironmentVariables& environment);

}  // namespace stint::agent
