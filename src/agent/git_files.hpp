/// Finds the repository that a folder's `.git` belongs to, and verifies it from the repository's side. A `.git` file is
/// data of the folder: an archive may contain one that names a repository of this machine. So the repository must name
/// the folder back, in a file that only its owner writes. Reads files only, without running git.
#pragma once

#include "stint/error.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::agent {

struct GitFolders {
  std::filesystem::path git_dir;     ///< of this checkout
  std::filesystem::path common_dir;  ///< of the repository
};

/// Nothing if `root` is not a checkout. `Errc::denied` if `.git` is a symbolic link, or points to a repository that
/// does not name `root` back: a linked worktree by `<common>/worktrees/<name>/gitdir`, a submodule or a separate git
/// directory by `core.worktree`; a bare repository directly in `root` needs no name. `Errc::invalid` if the target of
/// `.git` does not exist.
[[nodiscard]] Result<std::optional<GitFolders>> blocking_find_git(const std::filesystem::path& root);

/// One line of a git configuration file: `[section "subsection"] key = value`. Section and key are in lower case.
struct GitSetting {
  std::string section, subsection, key, value;

  [[nodiscard]] std::string name() const;  ///< `section.subsection.key`
};
/// Does not follow includes. `Errc::invalid` if the file is malformed.
[[nodiscard]] Result<std::vector<GitSetting>> parse_git_config(std::string_view text);
/// A value of the section `[core]`; the last one counts.
[[nodiscard]] std::optional<std::string> core_setting(std::string_view config, std::string_view key);

/// Settings in a repository's own configuration that make git start programs while it only reads: filters,
/// external diffs, includes of further files. A clone has none of them, an unpacked folder may. Two kinds are left out,
/// because the environment can override them: `core.fsmonitor` and `core.hooksPath`. Git LFS is allowed. A malformed
/// file counts as a finding.
struct GitPrograms {
  std::vector<std::string> found;
  std::vector<std::string>
      submodules;  ///< by name; git enters them, with their own configuration, unless an option prevents it
};
[[nodiscard]] GitPrograms blocking_find_git_programs(const std::filesystem::path& root, const GitFolders& folders);

}  // namespace stint::agent
