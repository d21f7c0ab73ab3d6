#include "agent/git_files.hpp"

#include "agent/files.hpp"
#include "agent/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>

namespace stint::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPathMax = 16 * 1024;      // files of git that hold one path
constexpr std::size_t kSubmodulesMax = 500;      // each takes two environment variables
constexpr std::size_t kConfigMax = 1024 * 1024;  // a configuration file; a larger one is refused

/// The path in a one-line file of git, after `prefix`; relative to `base`. It need not exist.
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
    return fail(Errc::invalid, fmt::format("{} points to {}: {}; try `git worktree repair`", file.string(),
                                           named.string(), error.message()));
  }
  return path;
}

/// Whether `named` is `real`, which is canonical. Compares the parent folders, because the last part may be missing.
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
                fmt::format("{} points to {}, whose commondir is another repository, {}: git never creates such a "
                            "worktree. Create one with `git worktree add`",
                            dot_git.string(), git_dir.string(), common.string()));
  }
  const auto named = blocking_read_line(git_dir / "gitdir", git_dir, "");
  if (!named || !is_same(*named, dot_git)) {
    return fail(
        Errc::denied,
        fmt::format("{} claims a worktree of {}, which names another folder ({}). If this one was "
                    "moved or copied here, run `git worktree repair` in it",
                    dot_git.string(), common.string(), named ? named->string() : std::string(named.error().what())));
  }
  return GitFolders{git_dir, common};
}

std::optional<std::string> blocking_core_setting(const fs::path& git_dir, std::string_view key) {
  // With extensions.worktreeConfig the second file applies to the checkout and overrides the first.
  for (const char* const name : {"config.worktree", "config"}) {
    const auto text = blocking_read_file(git_dir / name, kConfigMax);
    if (auto value = text ? core_setting(*text, key) : std::nullopt) return value;
  }
  return std::nullopt;
}

/// A submodule, `git init --separate-git-dir`, or a bare repository in the parent folder of its worktrees.
Result<GitFolders> blocking_enter_separate(const fs::path& root, const fs::path& git_dir) {
  const fs::path dot_git = root / ".git";
  if (const auto named = blocking_core_setting(git_dir, "worktree")) {
    std::error_code error;
    if (fs::canonical(git_dir / *named, error) == root && !error) return GitFolders{git_dir, git_dir};
  }
  const bool below = git_dir.parent_path() == root && git_dir.filename() != ".git";
  if (below && blocking_core_setting(git_dir, "bare") == "true") return GitFolders{git_dir, git_dir};
  return fail(
      Errc::denied,
      fmt::format("{} claims the repository {}, which does not name this folder as its worktree. If it is, run `git "
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
                            "only links to. Remove the link; create a second checkout with `git worktree add`",
                            dot_git.string()));
  }
  if (fs::is_directory(status)) {
    if (!blocking_exists(dot_git / "HEAD")) return std::nullopt;  // an empty folder; git ignores it, too
    if (blocking_exists(dot_git / "commondir")) {
      return fail(Errc::denied,
                  fmt::format("{} has a commondir, which only linked worktrees have: git never creates such a "
                              "folder. Remove that file",
                              dot_git.string()));
    }
    return GitFolders{dot_git, dot_git};
  }
  if (!fs::is_regular_file(status)) return std::nullopt;
  STINT_TRY(const fs::path git_dir, blocking_follow_line(dot_git, root, "gitdir:"));
  if (blocking_exists(git_dir / "commondir")) return blocking_enter_worktree(root, git_dir);
  return blocking_enter_separate(root, git_dir);
}

namespace {

/// Parses one value: resolves quotes and escapes; a comment ends it, and so does the line, unless a backslash is last.
std::string take_value(std::string_view& rest) {
  std::string out;
  std::size_t kept = 0;  // up to the last character that is not a space outside quotes
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

/// Parses the header of a section, after its `[`: `core]`, `filter "a]b"]`, or the old form `filter.a]`.
bool take_section(std::string_view& rest, GitSetting& out) {
  const std::size_t end = rest.find_first_of(" \t\"]\n");
  if (end == std::string_view::npos) return false;
  std::string name = lower_case(rest.substr(0, end));
  const std::size_t dot = name.find('.');
  out.section = name.substr(0, dot);
  out.subsection = dot == std::string::npos ? "" : name.substr(dot + 1);
  rest.remove_prefix(end);
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  if (rest.starts_with('"')) {
    rest.remove_prefix(1);
    out.subsection.clear();
    while (!rest.empty() && rest[0] != '"' && rest[0] != '\n') {
      if (rest[0] == '\\') rest.remove_prefix(1);
      if (rest.empty()) return false;
      out.subsection += rest[0];
      rest.remove_prefix(1);
    }
    if (!rest.starts_with('"')) return false;
    rest.remove_prefix(1);
  }
  if (!rest.starts_with(']')) return false;
  rest.remove_prefix(1);
  return true;
}

bool is_key(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

/// `section.key` of settings that name a program, for any subsection.
constexpr std::array<std::string_view, 32> kProgramSettings{"core.sshcommand",
                                                            "core.gitproxy",
                                                            "core.askpass",
                                                            "core.editor",
                                                            "core.pager",
                                                            "core.alternaterefscommand",
                                                            "filter.clean",
                                                            "filter.smudge",
                                                            "filter.process",
                                                            "diff.external",
                                                            "diff.command",
                                                            "diff.textconv",
                                                            "merge.driver",
                                                            "credential.helper",
                                                            "gpg.program",
                                                            "gpg.defaultkeycommand",
                                                            "sequence.editor",
                                                            "remote.uploadpack",
                                                            "remote.receivepack",
                                                            "remote.vcs",
                                                            "include.path",
                                                            "includeif.path",
                                                            "interactive.difffilter",
                                                            "uploadpack.packobjectshook",
                                                            "trailer.command",
                                                            "trailer.cmd",
                                                            "difftool.cmd",
                                                            "difftool.path",
                                                            "mergetool.cmd",
                                                            "mergetool.path",
                                                            "hook.command",
                                                            "protocol.allow"};
constexpr std::array<std::string_view, 3> kLfs{"git-lfs clean -- %f", "git-lfs smudge -- %f", "git-lfs filter-process"};

bool names_program(const GitSetting& setting) {
  if (setting.section == "alias") return setting.value.starts_with('!');
  if (setting.section == "submodule" && setting.key == "update") return setting.value.starts_with('!');
  if (setting.section == "pager") return setting.value != "true" && setting.value != "false";
  if (setting.section == "filter" && std::ranges::find(kLfs, setting.value) != kLfs.end()) return false;
  return std::ranges::find(kProgramSettings, setting.section + "." + setting.key) != kProgramSettings.end();
}

}  // namespace

std::string GitSetting::name() const { return section + (subsection.empty() ? "." : "." + subsection + ".") + key; }

Result<std::vector<GitSetting>> parse_git_config(std::string_view text) {
  std::vector<GitSetting> out;
  GitSetting setting;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    if (text.empty()) return out;
    if (text[0] == '#' || text[0] == ';') {
      text.remove_prefix(std::min(text.find('\n'), text.size()));
      continue;
    }
    if (text[0] == '[') {
      text.remove_prefix(1);
      if (!take_section(text, setting)) return fail(Errc::invalid, "a section header is not closed");
      continue;
    }
    const std::size_t end = std::min(text.find_first_of("=\n#;"), text.size());
    setting.key = lower_case(trimmed(text.substr(0, end)));
    if (setting.section.empty() || !is_key(setting.key)) return fail(Errc::invalid, "a line is not a setting");
    const bool has_value = end < text.size() && text[end] == '=';
    text.remove_prefix(has_value ? end + 1 : end);
    if (has_value) text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    setting.value = take_value(text);
    if (!has_value) setting.value = "true";  // a key without a value means true
    out.push_back(setting);
  }
}

std::optional<std::string> core_setting(std::string_view config, std::string_view key) {
  std::optional<std::string> found;
  const auto settings = parse_git_config(config);
  if (!settings) return found;
  for (const GitSetting& setting : *settings) {
    if (setting.section == "core" && setting.subsection.empty() && setting.key == key) found = setting.value;
  }
  return found;
}

GitPrograms blocking_find_git_programs(const fs::path& root, const GitFolders& folders) {
  GitPrograms out;
  const fs::path modules = root / ".gitmodules";
  for (const fs::path& file : {folders.common_dir / "config", folders.common_dir / "config.worktree",
                               folders.git_dir / "config.worktree", modules}) {
    const auto text = blocking_read_file(file, kConfigMax);
    if (!text && text.error() == Errc::unavailable) continue;
    const auto settings = text ? parse_git_config(*text) : fail(text.error());
    if (!settings) {
      out.found.push_back(fmt::format("{}, which can't be read: {}", file.string(), settings.error().what()));
      continue;
    }
    for (const GitSetting& setting : *settings) {
      if (setting.section == "submodule") out.submodules.push_back(setting.subsection);
      if (file == modules || !names_program(setting)) continue;  // git takes no program from .gitmodules
      out.found.push_back(fmt::format("git with {} = {}", setting.name(), setting.value));
    }
  }
  for (std::vector<std::string>* const list : {&out.found, &out.submodules}) {
    std::ranges::sort(*list);
    list->erase(std::ranges::unique(*list).begin(), list->end());
  }
  if (out.submodules.size() > kSubmodulesMax) {
    out.found.push_back(fmt::format("git with more than {} submodules", kSubmodulesMax));
    out.submodules.resize(kSubmodulesMax);
  }
  return out;
}

}  // namespace stint::agent
