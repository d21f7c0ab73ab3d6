#include "os/cgroup.hpp"

#include "os/fd.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <vector>

namespace stint::os {
namespace {

constexpr std::string_view kCgroupPrefix = "stint-";

/// The mount point of cgroup v2: the fifth field of its line.
std::string cgroup_mount() {
  const std::string table = read_small_file("/proc/self/mountinfo");
  for (std::size_t from = 0; from < table.size();) {
    const auto to = std::min(table.find('\n', from), table.size());
    const std::string_view line = std::string_view(table).substr(from, to - from);
    from = to + 1;
    if (line.find(" - cgroup2 ") == std::string_view::npos) continue;
    std::size_t at = 0;
    for (int field = 0; field < 4 && at != std::string_view::npos; ++field) at = line.find(' ', at) + 1;
    return std::string(line.substr(at, line.find(' ', at) - at));
  }
  return {};
}

}  // namespace

std::string own_cgroup() {
  const std::string mount = cgroup_mount();
  if (mount.empty()) return {};
  const std::string groups = read_small_file("/proc/self/cgroup");
  const std::string_view path = cgroup_line(groups);
  if (path.empty()) return {};
  return path == "/" ? mount : mount + std::string(path);
}

std::string_view cgroup_line(std::string_view text) {
  const auto at = text.starts_with("0::") ? 0 : text.find("\n0::");
  if (at == std::string_view::npos) return {};
  const auto from = text.find("::", at) + 2;
  return text.substr(from, std::min(text.find('\n', from), text.size()) - from);
}

std::vector<std::string> runs_in_cgroup_path(std::string_view path) {
  std::vector<std::string> runs;
  for (std::size_t from = 0; from < path.size();) {
    const auto to = std::min(path.find('/', from), path.size());
    const std::string_view name = path.substr(from, to - from);
    if (name.starts_with(kCgroupPrefix)) runs.emplace_back(name.substr(kCgroupPrefix.size()));
    from = to + 1;
  }
  return runs;
}

std::string cgroup_directory(std::string_view path, std::string_view run) {
  const std::string name = "/" + std::string(kCgroupPrefix) + std::string(run);
  for (auto at = path.find(name); at != std::string_view::npos; at = path.find(name, at + 1)) {
    const auto end = at + name.size();
    if (end == path.size() || path[end] == '/') return cgroup_mount() + std::string(path.substr(0, end));
  }
  return {};
}

/// Includes runs that were started inside of another run. Bounded, as paths are.
std::vector<std::string> cgroup_runs_below(const std::string& parent) {
  std::vector<std::string> found;
  DIR* const folder = parent.empty() ? nullptr : ::opendir(parent.c_str());
  if (folder == nullptr) return found;
  while (const dirent* const entry = ::readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (entry->d_type != DT_DIR || !name.starts_with(kCgroupPrefix)) continue;
    found.emplace_back(name.substr(kCgroupPrefix.size()));
  }
  ::closedir(folder);
  return found;
}

std::string delegated_cgroup() {
  const std::string own = own_cgroup();
  if (own.empty() || ::access(own.c_str(), W_OK) != 0 || ::access(procs_file(own).c_str(), W_OK) != 0) return {};
  return own;
}

std::string cgroup_path(const std::string& parent, std::string_view run) {
  return parent.empty() ? std::string() : parent + "/" + std::string(kCgroupPrefix) + std::string(run);
}

bool is_cgroup_of(const std::string& path, std::string_view run) {
  if (run.empty() || run.contains('/') || !path.starts_with('/') || !path.ends_with(cgroup_path("/", run).substr(1))) {
    return false;
  }
  struct statfs system{};  // excludes a folder that another user made to redirect our writes through a link
  return ::statfs(path.c_str(), &system) == 0 && system.f_type == CGROUP2_SUPER_MAGIC;
}

bool make_cgroup(const std::string& path) noexcept { return ::mkdir(path.c_str(), 0755) == 0; }

pid_t fork_into_cgroup(const std::string& cgroup) noexcept {
  if (cgroup.empty()) return ::fork();
  const std::string procs = procs_file(cgroup);
  const Fd directory(::open(cgroup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  clone_args how{};
  how.flags = CLONE_INTO_CGROUP;
  how.exit_signal = SIGCHLD;
  how.cgroup = static_cast<std::uint64_t>(directory.get());
  const long born = directory ? ::syscall(SYS_clone3, &how, sizeof how) : -1;
  if (born >= 0) return static_cast<pid_t>(born);
  const pid_t pid = ::fork();  // before Linux 5.7, or under a seccomp filter without clone3
  if (pid == 0) write_kernel_file(procs, "0");
  return pid;
}

bool limit_memory(const std::string& path, std::uint64_t bytes) noexcept {
  if (!write_kernel_file(path + "/memory.max", std::to_string(bytes))) return false;
  write_kernel_file(path + "/memory.swap.max", "0");   // otherwise the limit would only slow it down
  write_kernel_file(path + "/memory.oom.group", "1");  // kill all processes of the agent together
  return true;
}

std::uint64_t out_of_memory_kills(const std::string& path) {
  const std::string events = read_small_file(path + "/memory.events");
  const auto at = events.find("oom_kill ");
  if (at == std::string::npos) return 0;
  std::uint64_t count = 0;
  std::from_chars(events.data() + at + 9, events.data() + events.size(), count);
  return count;
}

bool is_populated(const std::string& path) {
  const FileText events = read_file(path + "/cgroup.events");
  if (events.error == ENOENT || events.error == ENODEV) return false;  // ENODEV: removed after it was opened
  return events.text.find("populated 0") == std::string::npos;
}

void kill_cgroup(const std::string& path) noexcept {
  if (!path.empty()) write_kernel_file(path + "/cgroup.kill", "1");
}

void remove_cgroup(const std::string& path) noexcept {
  if (path.empty() || ::rmdir(path.c_str()) == 0 || errno != EBUSY) return;
  // Nested runs that were killed with their keepers have left their cgroups below it.
  for (const std::string& run : cgroup_runs_below(path)) remove_cgroup(cgroup_path(path, run));
  ::rmdir(path.c_str());
}

}  // namespace stint::os
