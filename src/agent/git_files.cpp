#include "agent/git_files.hpp"

#include "agent/files.hpp"
#include "agent/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

namespace stint::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPathMax = 16 * 1024;      // git's files that hold one path
constexpr std::size_t kConfigMax = 1024 * 1024;  // a configuration file; a larger one is refused

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// The path in a one-line file of git, after `prefix`; relative ones begin at `base`. It need not exist.
Result<fs::path> blocking_read_line(const fs::path& file, const fs::path& base, std::string_view prefix) {
  STINT_TRY(const std::string text, blocking_read_file(file, kPathMax));
  std::string_view line = trimmed(text);
  if (!line.starts_with(prefix))
    return fail(Errc::invalid, fmt::format("{} does not begin with '{}'", file.string(), prefix));
  return base / trimmed(line.substr(prefix.size()));
}

Result<fs::path> blocking_follow_line(const fs::path& file, const fs::path& base, std::string_view prefix) {
  STINT_TRY(const fs::path named, blocking_read_line(file, base, prefix));
  std::error_code error;
  fs::path path = fs::canonical(named, error);
  if (error) {
    return fail(Errc::invalid, fmt::format("{} leads to {}: {}; `git worktree repair` may mend it", file.string(),
                                           named.string(), error.message()));
  }
  return path;
}

/// Whether `named` is `real`, which is canonical. By the folder above, because the last part may be missing.
bool is_same(const fs::path& named, const fs::path& real) {
  std::error_code error;
  return named.filename() == real.filename() && fs::canonical(named.parent_path(), error) == real.parent_path();
}

/// `git worktree add` writes both ends: `<worktree>/.git` and `<common>/worktrees/<name>/gitdir`.
Result<GitFolders> blocking_enter_worktree(const fs::path& root, const fs::path& git_dir) {
  const fs::path dot_git = root / ".git";
  STINT_TRY(const fs::path common, blocking_follow_line(git_dir / "commondir", git_dir, ""));
  if (git_dir.parent_path() != common / "worktrees") {
    return fail(Errc::denied,
                fmt::format("{} leads to {}, whose commondir is another repository, {}: git makes no such "
                            "worktree. `git worktree add` makes one",
                            dot_git.string(), git_dir.string(), common.string()));
  }
  const auto named = blocking_read_line(git_dir / "gitdir", git_dir, "");
  if (!named || !is_same(*named, dot_git)) {
    return fail(
        Errc::denied,
        fmt::format("{} claims a worktree of {}, which names another folder ({}). If this one was "
                    "moved or copied here, `git worktree repair` in it says so",
                    dot_git.string(), common.string(), named ? named->string() : std::string(named.error().what())));
  }
  return GitFolders{git_dir, common};
}

std::optional<std::string> blocking_core_setting(const fs::path& git_dir, std::string_view key) {
  // With extensions.worktreeConfig the second file counts for the checkout, above the first.
  for (const char* const name : {"config.worktree", "config"}) {
    const auto text = blocking_read_file(git_dir / name, kConfigMax);
    if (auto value = text ? core_setting(*text, key) : std::nullopt) return value;
  }
  return std::nullopt;
}

/// A submodule, `git init --separate-git-dir`, or a bare repository in the folder of its worktrees.
Result<GitFolders> blocking_enter_separate(const fs::path& root, const fs::path& git_dir) {
  const fs::path dot_git = root / ".git";
  if (const auto named = blocking_core_setting(git_dir, "worktree")) {
    std::error_code error;
    if (fs::canonical(git_dir / *named, error) == root && !error) return GitFolders{git_dir, git_dir};
  }
  const bool below = git_dir.parent_path() == root && git_dir.filename() != ".git";
  if (below && blocking_core_setting(git_dir, "bare") == "true") return GitFolders{git_dir, git_dir};
  return fail(Errc::denied,
              fmt::format("{} claims the repository {}, which does not name this folder as its own. If it is, say `git "
                          "config core.worktree {}` there; for a second checkout, use `git worktree add`",
                          dot_git.string(), git_dir.string(), root.string()));
}

}  // namespace

Result<std::optional<GitFolders>> blocking_find_git(const fs::path& root) {
  const fs::path dot_git = root / ".git";
  std::error_code error;
  const fs::file_status status = fs::symlink_status(dot_git, error);
  if (fs::is_symlink(status)) {
    return fail(Errc::denied,
                fmt::format("{} is a symbolic link: a folder can't be the checkout of a repository that it "
                            "only points to. Remove the link; `git worktree add` makes a second checkout",
                            dot_git.string()));
  }
  if (fs::is_directory(status)) {
    if (!is_there(dot_git / "HEAD")) return std::nullopt;  // an empty folder; git passes over it, too
    if (is_there(dot_git / "commondir")) {
      return fail(Errc::denied, fmt::format("{} has a commondir, which only linked worktrees have: git makes no such "
                                            "folder. Remove that file",
                                            dot_git.string()));
    }
    return GitFolders{dot_git, dot_git};
  }
  if (!fs::is_regular_file(status)) return std::nullopt;
  STINT_TRY(const fs::path git_dir, blocking_follow_line(dot_git, root, "gitdir:"));
  if (is_there(git_dir / "commondir")) return blocking_enter_worktree(root, git_dir);
  return blocking_enter_separate(root, git_dir);
}

namespace {

/// One value: quotes and escapes are resolved, a comment ends it, and so does the line, unless a backslash is last.
std::string take_value(std::string_view& rest) {
  std::string out;
  std::size_t kept = 0;  // up to the last character that is not a space outside of quotes
  bool quoted = false;
  while (!rest.empty() && rest[0] != '\n') {
    char c = rest[0];
    rest.remove_prefix(1);
    if (c == '"') {
      quoted = !quoted;
      kept = out.size();
      continue;
    }
    if (!quoted && (c == '#' || c == ';')) {
      rest.remove_prefix(std::min(rest.find('\n'), rest.size()));
      break;
    }
    const bool escaped = c == '\\' && !rest.empty();
    if (escaped) {
      c = rest[0];
      rest.remove_prefix(1);
      if (c == '\n') continue;
      c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'b' ? '\b' : c;
    }
    out += c;
    if (escaped || quoted || (c != ' ' && c != '\t' && c != '\r')) kept = out.size();
  }
  out.resize(kept);
  return out;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

}  // namespace

std::optional<std::string> core_setting(std::string_view config, std::string_view key) {
  std::optional<std::string> found;
  bool in_core = false;
  while (!config.empty()) {
    const std::size_t begin = config.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) break;
    config.remove_prefix(begin);
    if (config[0] == '[') {
      const std::size_t end = std::min(config.find_first_of("]\n"), config.size() - 1);
      in_core = lower_case(config.substr(0, end + 1)) == "[core]";
      config.remove_prefix(end + 1);
      continue;
    }
    const std::size_t end = std::min(config.find_first_of("=\n#;"), config.size());
    const std::string name = lower_case(trimmed(config.substr(0, end)));
    const bool has_value = end < config.size() && config[end] == '=';
    config.remove_prefix(has_value ? end + 1 : end);
    if (has_value) config.remove_prefix(std::min(config.find_first_not_of(" \t"), config.size()));
    std::string value = take_value(config);
    if (!in_core || name != key) continue;
    found = has_value ? std::move(value) : "true";  // a key alone means true
  }
  return found;
}

}  // namespace stint::agent
