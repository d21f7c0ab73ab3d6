/// Which repository a folder's `.git` belongs to, and whether that repository says so as well. A `.git` file is data of
/// the folder: anybody can pack one that names a repository of this machine. So the repository must name the folder
/// back, in a file that only its owner writes. Found by looking, without running git.
#pragma once

#include "stint/error.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace stint::agent {

struct GitFolders {
  std::filesystem::path git_dir;     ///< of this checkout
  std::filesystem::path common_dir;  ///< of the repository
};

/// Nothing if `root` is no checkout. `Errc::denied` if `.git` is a symbolic link, or leads to a repository that does
/// not name `root` back: a linked worktree by `<common>/worktrees/<name>/gitdir`, a submodule or a separate git
/// directory by `core.worktree`; a bare repository directly below `root` needs no name. `Errc::invalid` if `.git` leads
/// nowhere.
[[nodiscard]] Result<std::optional<GitFolders>> blocking_find_git(const std::filesystem::path& root);

/// A value of the section `[core]` in the text of a git configuration file; the last one counts. Includes are not
/// followed. `key` is in lower case.
[[nodiscard]] std::optional<std::string> core_setting(std::string_view config, std::string_view key);

}  // namespace stint::agent
