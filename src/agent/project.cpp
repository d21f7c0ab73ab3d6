#include "agent/project.hpp"

#include "agent/files.hpp"
#include "agent/text.hpp"

#include <fmt/format.h>

#include <system_error>

namespace stint::agent {
namespace {

namespace fs = std::filesystem;

constexpr int kFoldersUpMax = 256;
constexpr std::size_t kPathMax = 16 * 1024;  // git's files that hold one path

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// The path that a one-line file of git holds, relative to `base`.
Result<fs::path> blocking_read_path(const fs::path& file, const fs::path& base, std::string_view prefix) {
  STINT_TRY(const std::string text, blocking_read_file(file, kPathMax));
  std::string_view line = trimmed(text);
  if (!line.starts_with(prefix))
    return fail(Errc::invalid, fmt::format("{} does not begin with '{}'", file.string(), prefix));
  line = trimmed(line.substr(prefix.size()));
  std::error_code error;
  const fs::path path = fs::canonical(base / line, error);
  if (error) {
    return fail(Errc::invalid, fmt::format("{} leads to {}: {}; `git worktree repair` may mend it", file.string(), line,
                                           error.message()));
  }
  return path;
}

/// Fills in git's folders if `root` is a checkout; false if it is none.
Result<bool> blocking_enter_checkout(const fs::path& root, Project& project) {
  const fs::path dot_git = root / ".git";
  std::error_code error;
  const fs::file_status status = fs::status(dot_git, error);
  if (fs::is_directory(status)) {
    if (!is_there(dot_git / "HEAD")) return false;  // somebody's empty folder; git passes over it, too
    project.git_dir = fs::canonical(dot_git, error);
  } else if (fs::is_regular_file(status)) {
    STINT_TRY(project.git_dir, blocking_read_path(dot_git, root, "gitdir:"));
  } else {
    return false;
  }
  project.root = root;
  project.common_dir = project.git_dir;
  if (is_there(*project.git_dir / "commondir")) {
    STINT_TRY(project.common_dir, blocking_read_path(*project.git_dir / "commondir", *project.git_dir, ""));
  }
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
    if (!marked && (is_there(folder / ".stint") || is_there(folder / "stint.toml"))) marked = folder;
    if (folder == folder.parent_path()) break;
  }
  project.root = marked.value_or(start);
  return project;
}

Result<UserPlaces> user_places(const Environment& environment) {
  const auto place = [&](const char* variable, const char* below_home) -> Result<fs::path> {
    // A relative path is to be ignored, says the specification: it would mean another place in every folder.
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
