#include "os/owner.hpp"

#include "os/fd.hpp"
#include "os/number.hpp"

#include <cstdio>
#include <filesystem>
#include <optional>
#include <pwd.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace stint::os {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kUserBytesMax = 16 << 10;  // of one entry of the user database
constexpr std::string_view kListening = "0A";

struct Listener {
  uid_t user = 0;
  std::string inode;
};

/// From /proc/net/tcp or tcp6: `sl local remote state queues timer retransmits uid timeout inode …`, addresses as
/// hex:port.
std::optional<Listener> find_listener(const std::string& table, std::uint16_t port) {
  std::istringstream lines(table);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::vector<std::string> fields;
    for (std::string word; fields.size() < 10 && words >> word;) fields.push_back(std::move(word));
    if (fields.size() < 10 || fields[3] != kListening) continue;
    const auto colon = fields[1].rfind(':');
    if (colon == std::string::npos || std::strtoul(fields[1].c_str() + colon + 1, nullptr, 16) != port) continue;
    return Listener{number<uid_t>(fields[7]), fields[9]};
  }
  return std::nullopt;
}

bool has_socket(const fs::path& process, const std::string& link) {
  std::error_code error;
  for (fs::directory_iterator each(process / "fd", error), end; !error && each != end; each.increment(error)) {
    std::error_code gone;
    if (fs::read_symlink(each->path(), gone).string() == link) return true;
  }
  return false;
}

/// The program and its first argument, as typed on a command line.
std::string command_of(const fs::path& process) {
  const std::string words = read_small_file((process / "cmdline").string());
  const std::string program = fs::path(words.c_str()).filename().string();
  const std::size_t second = std::string_view(words.c_str()).size() + 1;
  return second < words.size() ? program + " " + (words.c_str() + second) : program;
}

}  // namespace

std::string user_name(uid_t user) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(kUserBytesMax);
  if (::getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) return entry.pw_name;
  return "user " + std::to_string(user);
}

std::string foreign_owner(const std::string& path) {
  fs::path place = path;
  struct stat status{};
  while (::stat(place.c_str(), &status) != 0) {
    if (!place.has_relative_path()) return {};
    place = place.parent_path();
  }
  if (status.st_uid == ::geteuid() || (status.st_uid == 0 && place != path)) return {};
  return user_name(status.st_uid);
}

std::string port_owner(std::uint16_t port) {
  std::optional<Listener> listener;
  for (const char* const table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    if (!listener) listener = find_listener(read_small_file(table), port);
  }
  if (!listener) return {};
  const std::string link = "socket:[" + listener->inode + "]";
  std::error_code error;
  for (fs::directory_iterator each("/proc", error), end; !error && each != end; each.increment(error)) {
    const std::string name = each->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos || !has_socket(each->path(), link)) continue;
    std::error_code gone;
    const std::string folder = fs::read_symlink(each->path() / "cwd", gone).string();
    return "process " + name + " (" + command_of(each->path()) + (folder.empty() ? "" : ", in " + folder) + ")";
  }
  return "a process of " + user_name(listener->user);
}

}  // namespace stint::os
