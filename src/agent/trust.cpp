#include "agent/trust.hpp"

#include "agent/discovery.hpp"
#include "agent/files.hpp"
#include "agent/git_files.hpp"
#include "agent/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace stint::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRecordMax = 16 * 1024;  // bytes; one path
constexpr std::string_view kFolder = "trust";
constexpr std::string_view kProgramRecords = "programs";
constexpr std::string_view kFolderRecords = "folders";
constexpr std::string_view kStores = "stores";
constexpr std::string_view kTokens = "tokens";

/// A record's file is named by this hash of the path. A collision costs one of two projects its trust, never grants it:
/// the record contains the path.
std::string record_name(const fs::path& identity) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const char c : identity.native()) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return fmt::format("{:016x}", hash);
}

/// Identifies a folder beyond its path. Inodes are reused: a folder that was deleted and created again often has
/// the same one, and only its birth time differs. Device numbers change from boot to boot on some file systems, so they
/// are not part of it. On a file system without birth times it is 0.
struct FolderIdentity {
  std::uint64_t inode = 0;
  std::uint64_t born = 0;  // nanoseconds since 1970

  friend bool operator==(const FolderIdentity&, const FolderIdentity&) = default;
};
Result<FolderIdentity> blocking_identify(const fs::path& path) {
  struct statx status{};
  if (::statx(AT_FDCWD, path.c_str(), AT_STATX_SYNC_AS_STAT, STATX_INO | STATX_BTIME, &status) != 0) {
    return fail(Errc::unavailable, fmt::format("{}: {}", path.string(), std::generic_category().message(errno)));
  }
  constexpr std::uint64_t kNanoseconds = 1'000'000'000;
  FolderIdentity identity{status.stx_ino, 0};
  if ((status.stx_mask & STATX_BTIME) != 0) {
    identity.born = static_cast<std::uint64_t>(status.stx_btime.tv_sec) * kNanoseconds + status.stx_btime.tv_nsec;
  }
  return identity;
}

struct Record {
  FolderIdentity folder;
  fs::path identity;
};

/// Consumes a number at the beginning of `text`, and the space after it.
bool take_number(std::string_view& text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto used = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || used >= text.size() || text[used] != ' ') return false;
  text.remove_prefix(used + 1);
  return true;
}

/// `inode birth path`; the path is last, since it may contain anything.
Result<Record> blocking_read_record(const fs::path& file) {
  STINT_TRY(const std::string text, blocking_read_file(file, kRecordMax));
  struct stat status{};
  if (::lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid() ||
      (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fail(Errc::denied, fmt::format("{} belongs to another user or is writable by others: remove it, then run "
                                          "`stint trust` again",
                                          file.string()));
  }
  Record record;
  std::string_view rest = text;
  if (!take_number(rest, record.folder.inode) || !take_number(rest, record.folder.born)) {
    return fail(Errc::invalid, fmt::format("{} is not a valid trust record: remove it", file.string()));
  }
  record.identity = rest;
  return record;
}

bool blocking_holds(const Record& record) {
  const Result<FolderIdentity> now = blocking_identify(record.identity);
  return now && *now == record.folder;
}

/// The users whose files may decide what this user runs: itself; for root also the user that called sudo.
bool is_own(uid_t owner, const EnvironmentVariables& environment) {
  if (owner == ::geteuid()) return true;
  const auto sudo = environment.find("SUDO_UID");
  return ::geteuid() == 0 && sudo != environment.end() && sudo->second == fmt::to_string(owner);
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

}  // namespace

namespace {

/// Whether `records` has a record of exactly this folder.
Result<bool> blocking_is_recorded(const fs::path& records, const fs::path& folder) {
  const Result<Record> record = blocking_read_record(records / record_name(folder));
  if (!record && record.error() == Errc::unavailable) return false;
  if (!record) return std::unexpected(record.error());
  return record->identity == folder && blocking_holds(*record);
}

Result<> blocking_record(const fs::path& records, const fs::path& folder) {
  STINT_TRY(const FolderIdentity identity, blocking_identify(folder));
  return blocking_replace_private_file(records / record_name(folder),
                                       fmt::format("{} {} {}", identity.inode, identity.born, folder.string()));
}

}  // namespace

namespace {

/// Whether the repository names this worktree, but git did not create it for that entry: `git worktree add` creates
/// both ends at the same time. One that was copied, or unpacked where a deleted worktree has left its entry, needs its
/// own trust. False on a file system without birth times.
bool blocking_is_successor(const Project& project) {
  constexpr std::uint64_t kApartMax = 2'000'000'000;  // nanoseconds; git needs milliseconds
  if (!project.is_worktree()) return false;
  const auto entry = blocking_identify(*project.git_dir), folder = blocking_identify(project.root / ".git");
  if (!entry || !folder || entry->born == 0 || folder->born == 0) return false;
  return std::max(entry->born, folder->born) - std::min(entry->born, folder->born) > kApartMax;
}

}  // namespace

Result<bool> blocking_is_trusted(const fs::path& state, const Project& project) {
  STINT_TRY(const bool trusted, blocking_is_recorded(state / kFolder, project.identity()));
  if (!trusted || !blocking_is_successor(project)) return trusted;
  return blocking_is_recorded(state / kFolder, project.root);
}

Result<> blocking_trust(const fs::path& state, const Project& project) {
  STINT_CHECK(blocking_record(state / kFolder, project.identity()));
  if (!blocking_is_successor(project)) return {};
  return blocking_record(state / kFolder, project.root);
}

Result<> blocking_check_owner(const fs::path& state, const Project& project, const EnvironmentVariables& environment) {
  std::vector<fs::path> paths;
  if (project.is_repository()) {
    paths = {project.root, project.root / ".git", *project.git_dir, *project.common_dir};
  } else {
    paths = {project.root / "stint.toml"};
    for (const std::string& name : places_of_agents()) paths.push_back(project.root / name);
    for (const domain::DriverDescriptor& driver : domain::kDrivers) {
      for (const std::string_view file : driver.checkout_files) paths.push_back(project.root / file);
    }
  }
  for (const fs::path& path : paths) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0 || is_own(status.st_uid, environment)) continue;
    STINT_TRY(const bool trusted, blocking_is_trusted(state, project));
    if (trusted) return {};
    return fail(Errc::denied,
                fmt::format("{} belongs to another user (uid {}), whose files would decide what runs here. If that is "
                            "intended, run `stint trust` there",
                            path.string(), status.st_uid));
  }
  return {};
}

bool blocking_is_own(const fs::path& path, const EnvironmentVariables& environment) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 && is_own(status.st_uid, environment);
}

Result<> blocking_allow_program(const fs::path& state, const std::string& program) {
  return blocking_replace_private_file(state / kProgramRecords / record_name(program), program);
}

bool blocking_is_program_allowed(const fs::path& state, const std::string& program) {
  const Result<std::string> named = blocking_read_file(state / kProgramRecords / record_name(program), kRecordMax);
  return named && *named == program;
}

Result<> blocking_allow_folder(const fs::path& state, const fs::path& folder) {
  const auto known = blocking_is_folder_allowed(state, folder);
  if (known && *known) return {};  // the usual case: saves the write
  const auto entries = blocking_list_folder(state / kFolderRecords, kFolderRecordsMax);
  if (entries && entries->more) {  // removes those of folders that are gone
    for (const std::string& name : entries->names) {
      const Result<Record> record = blocking_read_record(state / kFolderRecords / name);
      std::error_code ignored;
      if (!record || !blocking_holds(*record)) fs::remove(state / kFolderRecords / name, ignored);
    }
  }
  return blocking_record(state / kFolderRecords, folder);
}

Result<bool> blocking_is_folder_allowed(const fs::path& state, const fs::path& folder) {
  return blocking_is_recorded(state / kFolderRecords, folder);
}

Result<> blocking_note_own(const fs::path& state, OwnFile which, const fs::path& common_dir) {
  return blocking_record(state / (which == OwnFile::store ? kStores : kTokens), common_dir);
}

bool blocking_is_own(const fs::path& state, OwnFile which, const fs::path& common_dir) {
  return blocking_is_recorded(state / (which == OwnFile::store ? kStores : kTokens), common_dir).value_or(false);
}

Result<> blocking_check_links(const fs::path& state, const Project& project) {
  std::vector<fs::path> paths{project.root / ".stint" / "semaphores"};
  if (project.is_repository()) {
    const fs::path folder = *project.common_dir / "stint";
    paths = {folder, folder / "stint.db", folder / "semaphores", folder / "daemons", folder / "stint.db.nodes"};
  }
  for (const fs::path& path : paths) {
    std::error_code error;
    if (!fs::is_symlink(fs::symlink_status(path, error))) continue;
    STINT_TRY(const bool trusted, blocking_is_trusted(state, project));
    if (trusted) return {};
    return fail(Errc::denied,
                fmt::format("{} is a symbolic link: Stint would write its files elsewhere. Remove it, or run "
                            "`stint trust` there if that is intended",
                            path.string()));
  }
  return {};
}

Result<fs::path> blocking_find_homes_of_agents(const fs::path& state, const Project& project) {
  STINT_TRY(const FolderIdentity folder, blocking_identify(project.identity()));
  return state / "homes" / fmt::format("{}.{}.{}", record_name(project.identity()), folder.inode, folder.born);
}

Result<bool> blocking_revoke_trust(const fs::path& state, const Project& project) {
  const fs::path file = state / kFolder / record_name(project.identity());
  std::error_code error;
  if (project.is_worktree()) fs::remove(state / kFolder / record_name(project.root), error);
  const bool removed = fs::remove(file, error);
  if (error) return fail(Errc::failed, fmt::format("can't remove {}: {}", file.string(), error.message()));
  return removed;
}

Result<std::vector<TrustRecord>> blocking_list_trust(const fs::path& state) {
  STINT_TRY(const FolderEntries entries, blocking_list_folder(state / kFolder, kTrustRecordsMax));
  std::vector<TrustRecord> out;
  for (const std::string& name : entries.names) {
    const Result<Record> record = blocking_read_record(state / kFolder / name);
    if (record && record_name(record->identity) == name) out.push_back({record->identity, blocking_holds(*record)});
  }
  std::ranges::sort(out, {}, &TrustRecord::identity);
  return out;
}

std::vector<TrustedThing> blocking_find_cli_settings(const fs::path& root, const domain::DriverDescriptor* driver) {
  std::vector<TrustedThing> out;
  for (const domain::DriverDescriptor& cli : domain::kDrivers) {
    if (driver != nullptr && driver != &cli) continue;
    for (const std::string_view file : cli.checkout_files) {
      struct stat status{};
      if (::lstat((root / file).c_str(), &status) != 0) continue;
      out.push_back({fmt::format("what {} reads there: settings, hooks, MCP servers, instructions", cli.name),
                     std::string(file)});
    }
  }
  return out;
}

std::vector<TrustedThing> blocking_find_git_things(const Project& project) {
  std::vector<TrustedThing> out;
  if (!project.is_repository()) return out;
  for (std::string& program : blocking_find_git_programs(project.root, {*project.git_dir, *project.common_dir}).found) {
    out.push_back({std::move(program), ".git/config"});
  }
  return out;
}

std::vector<std::string> blocking_find_submodules(const Project& project) {
  if (!project.is_repository()) return {};
  return blocking_find_git_programs(project.root, {*project.git_dir, *project.common_dir}).submodules;
}

std::vector<TrustedThing> things_that_need_trust(const domain::Agent& agent, const domain::DriverDescriptor& driver) {
  std::vector<TrustedThing> out;
  const std::string_view cli = driver.name;
  const std::string where = agent.file.empty() ? "a run without an agent's file" : agent.file;
  if (!agent.command.empty()) {
    std::vector<std::string> words;
    for (const domain::TemplateText& element : agent.command) words.push_back(element.text);
    out.push_back({joined(words), agent.file});
  }
  for (const domain::Tool& tool : agent.tools) {
    if (!tool.command.empty()) out.push_back({joined(tool.command), agent.file});
    if (tool.http) out.push_back({fmt::format("{} {}", tool.http->method, tool.http->url), agent.file});
    if (!tool.mcp) continue;
    const std::string server = tool.mcp->command.empty() ? tool.mcp->url : joined(tool.mcp->command);
    out.push_back({fmt::format("the MCP server {}", server), agent.file});
  }
  if (!agent.driver_args.empty()) out.push_back({fmt::format("{} {}", cli, joined(agent.driver_args)), where});
  if (agent.permissions == domain::Permissions::full && !driver.runs_command) {
    out.push_back({fmt::format("{} with permissions: full, which runs everything without asking", cli), where});
  }
  if (driver.grants_tools && agent.tool_names) {
    for (const std::string& name : *agent.tool_names) {
      const bool unasked = name.contains('(') || name.starts_with("mcp__");
      if (unasked) out.push_back({fmt::format("{} with {}, which it then uses without asking", cli, name), where});
    }
  }
  if (agent.home == domain::AgentHome::slot && !driver.runs_command) {
    out.push_back({fmt::format("{} with home: slot, which ignores the restrictions of your own settings", cli), where});
  }
  if (driver.always_reads_checkout) {
    out.push_back({fmt::format("{}, which starts the hooks and MCP servers that this checkout names", cli), where});
  }
  return out;
}

namespace {

/// An address, or a folder that the checkout chooses. The words (sqlite, memory) stay within the user's own folders.
bool decides_where_data_goes(const Setting& setting) {
  const std::string& first = setting.path[0];
  return (first == "store" && setting.text.find("://") != std::string::npos) ||
         (first == "limits_dir" && !setting.text.empty());
}

bool sends_keys(const Setting& setting) {
  const std::string& first = setting.path[0];
  return first == "accounts" || (first == "models" && setting.path.back() == "endpoint");
}

}  // namespace

std::optional<TrustedThing> setting_that_needs_trust(const Settings& settings) {
  for (const Setting& setting : settings.all) {
    if (setting.origin.kind != OriginKind::project || !decides_where_data_goes(setting)) continue;
    return TrustedThing{fmt::format("{} = {}", setting.key(), setting.shown()), describe(setting.origin)};
  }
  return std::nullopt;
}

std::optional<TrustedThing> endpoint_that_needs_trust(const Settings& settings) {
  for (const Setting& setting : settings.all) {
    if (setting.origin.kind != OriginKind::project || !sends_keys(setting)) continue;
    return TrustedThing{fmt::format("{} = {}", setting.key(), setting.shown()), describe(setting.origin)};
  }
  return std::nullopt;
}

std::vector<TrustedThing> things_that_need_trust(const Catalogue& catalogue, const Settings& settings) {
  std::vector<TrustedThing> out;
  for (const domain::Agent& agent : catalogue.agents) {
    const domain::DriverDescriptor& driver = agent.driver != nullptr ? *agent.driver : *settings.driver;
    for (TrustedThing& thing : things_that_need_trust(agent, driver)) out.push_back(std::move(thing));
  }
  for (const Setting& setting : settings.all) {
    if (setting.origin.kind != OriginKind::project) continue;  // the user's own settings need no trust
    const std::string& first = setting.path[0];
    if (first == "land") out.push_back({joined(setting.list), describe(setting.origin)});
    if (sends_keys(setting) || decides_where_data_goes(setting))
      out.push_back({fmt::format("{} = {}", setting.key(), setting.shown()), describe(setting.origin)});
  }
  return out;
}

Error untrusted(const Project& project, const TrustedThing& thing) {
  return {Errc::denied, fmt::format("{} is not trusted, and {} asks for: {}. Review it, then run `stint trust` there",
                                    project.root.string(), thing.where, excerpt(thing.what, 200))};
}

}  // namespace stint::agent
