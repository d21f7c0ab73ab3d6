#include "agent/trust.hpp"

#include "agent/files.hpp"
#include "agent/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace stint::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRecordMax = 16 * 1024;  // bytes; one path
constexpr std::string_view kFolder = "trust";

/// A record's file is named by this hash of the path. A collision costs one of two projects its trust, never gives it:
/// the path stands in the record.
std::string record_name(const fs::path& identity) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const char c : identity.native()) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return fmt::format("{:016x}", hash);
}

/// Which folder it is, beyond its path. Device numbers change from boot to boot on some file systems; this does not.
Result<std::uint64_t> blocking_inode(const fs::path& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return fail(Errc::unavailable, fmt::format("{}: {}", path.string(), std::generic_category().message(errno)));
  }
  return std::uint64_t{status.st_ino};
}

struct Record {
  std::uint64_t inode = 0;
  fs::path identity;
};

/// `inode path`; the path is last, for it may hold anything.
Result<Record> blocking_read_record(const fs::path& file) {
  STINT_TRY(const std::string text, blocking_read_file(file, kRecordMax));
  struct stat status{};
  if (::lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid() ||
      (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fail(Errc::denied, fmt::format("{} belongs to another user or may be written by one; remove it, then say "
                                          "`stint trust` again",
                                          file.string()));
  }
  Record record;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), record.inode);
  const auto used = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || used >= text.size() || text[used] != ' ') {
    return fail(Errc::invalid, fmt::format("{} is no record of trust; remove it", file.string()));
  }
  record.identity = text.substr(used + 1);
  return record;
}

bool holds(const Record& record) {
  const Result<std::uint64_t> inode = blocking_inode(record.identity);
  return inode && *inode == record.inode;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

}  // namespace

Result<bool> blocking_is_trusted(const fs::path& state, const Project& project) {
  const Result<Record> record = blocking_read_record(state / kFolder / record_name(project.identity()));
  if (!record && record.error() == Errc::unavailable) return false;
  if (!record) return std::unexpected(record.error());
  return record->identity == project.identity() && holds(*record);
}

Result<> blocking_trust(const fs::path& state, const Project& project) {
  STINT_TRY(const std::uint64_t inode, blocking_inode(project.identity()));
  return blocking_replace_private_file(state / kFolder / record_name(project.identity()),
                                       fmt::format("{} {}", inode, project.identity().string()));
}

Result<bool> blocking_revoke_trust(const fs::path& state, const Project& project) {
  const fs::path file = state / kFolder / record_name(project.identity());
  std::error_code error;
  const bool removed = fs::remove(file, error);
  if (error) return fail(Errc::failed, fmt::format("can't remove {}: {}", file.string(), error.message()));
  return removed;
}

Result<std::vector<TrustRecord>> blocking_list_trust(const fs::path& state) {
  STINT_TRY(const FolderEntries entries, blocking_list_folder(state / kFolder, kTrustRecordsMax));
  std::vector<TrustRecord> out;
  for (const std::string& name : entries.names) {
    const Result<Record> record = blocking_read_record(state / kFolder / name);
    if (record && record_name(record->identity) == name) out.push_back({record->identity, holds(*record)});
  }
  std::ranges::sort(out, {}, &TrustRecord::identity);
  return out;
}

std::vector<TrustedThing> things_that_need_trust(const domain::Agent& agent) {
  std::vector<TrustedThing> out;
  if (!agent.command.empty()) {
    std::vector<std::string> words;
    for (const domain::TemplateText& element : agent.command) words.push_back(element.text);
    out.push_back({joined(words), agent.file});
  }
  for (const domain::Tool& tool : agent.tools) {
    if (!tool.command.empty()) out.push_back({joined(tool.command), agent.file});
  }
  if (!agent.driver_args.empty()) {
    const std::string_view cli = agent.driver ? to_string(*agent.driver) : "the driver";
    out.push_back({fmt::format("{} {}", cli, joined(agent.driver_args)), agent.file});
  }
  return out;
}

std::vector<TrustedThing> things_that_need_trust(const Catalogue& catalogue, const Settings& settings) {
  std::vector<TrustedThing> out;
  for (const domain::Agent& agent : catalogue.agents) {
    for (TrustedThing& thing : things_that_need_trust(agent)) out.push_back(std::move(thing));
  }
  for (const Setting& setting : settings.all) {
    if (setting.origin.kind != OriginKind::project) continue;  // the user's own are the user's
    const std::string& first = setting.path[0];
    const bool sends_keys = first == "accounts" || (first == "models" && setting.path.back() == "endpoint");
    if (first == "land") out.push_back({joined(setting.list), describe(setting.origin)});
    if (sends_keys) out.push_back({fmt::format("{} = {}", setting.key(), setting.shown()), describe(setting.origin)});
  }
  return out;
}

Error untrusted(const Project& project, const TrustedThing& thing) {
  return {Errc::denied, fmt::format("{} is not trusted, and {} would run: {}. Look at it, then say `stint trust` there",
                                    project.root.string(), thing.where, excerpt(thing.what, 200))};
}

}  // namespace stint::agent
