// Invariants
// 1. Signals go through a pidfd whose process was read again after the pidfd was opened: no reused pid is hit.
// 2. "Gone" is never inferred from a sent signal, nor from a walk that found nothing: only from wait() returning
//    ECHILD to a subreaper, or from two consecutive scans of all processes that found nothing.
// 3. A walk reads the children of a process while that process still has its pid.
#include "os/process.hpp"

#include "os/cgroup.hpp"
#include "os/number.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <dirent.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unordered_map>
#include <unordered_set>
#include <utility>
extern "C" {  // missing in this header of glibc 2.36
#include <sys/pidfd.h>
}

namespace stint::os {
namespace {

/// Fields after the name in /proc/PID/stat: field 3 is the state.
constexpr std::size_t kParentField = 1, kGroupField = 2, kUserTimeField = 11, kSystemTimeField = 12, kStartField = 19;

constexpr int kWalksMost = 4;  // for two in a row to agree; a tree that changes faster is read again anyway

/// The numeric names in a folder: processes in /proc, threads in /proc/PID/task.
std::vector<pid_t> ids_in(const std::string& folder) {
  std::vector<pid_t> ids;
  DIR* const opened = ::opendir(folder.c_str());
  if (opened == nullptr) return ids;
  while (const dirent* const entry = ::readdir(opened)) {
    if (const auto id = number<pid_t>(entry->d_name); id > 0) ids.push_back(id);
  }
  ::closedir(opened);
  return ids;
}

std::string children_file(pid_t pid, pid_t thread) {
  return "/proc/" + std::to_string(pid) + "/task/" + std::to_string(thread) + "/children";
}

/// A kernel may be built without CONFIG_PROC_CHILDREN.
bool has_children_files() {
  static const bool has = ::access(children_file(::getpid(), ::getpid()).c_str(), R_OK) == 0;
  return has;
}

/// Each thread has its own list of children.
std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  for (const pid_t thread : ids_in("/proc/" + std::to_string(pid) + "/task")) {
    const std::string list = read_small_file(children_file(pid, thread));
    for (std::size_t from = 0; from < list.size();) {
      const auto to = std::min(list.find(' ', from), list.size());
      if (const auto child = number<pid_t>(std::string_view(list).substr(from, to - from)); child > 0) {
        children.push_back(child);
      }
      from = to + 1;
    }
  }
  return children;
}

using Pids = std::unordered_set<pid_t>;

/// The descendants of `ancestor`, by pid. May miss one whose parent ends meanwhile, and the sibling of one that ends:
/// the kernel guarantees a complete list only for processes that are stopped or frozen.
std::vector<Process> walk(const Process& ancestor, const Pids& except) {
  std::vector<Process> found = {ancestor};
  Pids seen = {ancestor.pid};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Process parent = found[i];
    const std::size_t before = found.size();
    for (const pid_t pid : children_of(parent.pid)) {
      if (except.contains(pid) || seen.contains(pid)) continue;
      const auto process = read_process(pid);
      if (!process || process->parent != parent.pid) continue;  // gone, or it has another parent now
      seen.insert(pid);
      found.push_back(*process);
    }
    if (found.size() == before) continue;
    if (const auto now = read_process(parent.pid); !now || now->start != parent.start) found.resize(before);
  }
  found.erase(found.begin());
  std::ranges::sort(found, {}, &Process::pid);
  return found;
}

bool same(const std::vector<Process>& one, const std::vector<Process>& other) {
  return std::ranges::equal(one, other, [](const Process& left, const Process& right) {
    return left.pid == right.pid && left.start == right.start;
  });
}

/// The value of the mark in an environment; empty: none.
std::string mark_in(const std::string& text) {
  const std::string environment = '\0' + text;
  const std::string needle = std::string(1, '\0') + kMarkVariable + "=";
  const auto at = environment.find(needle);
  if (at == std::string::npos) return {};
  return environment.c_str() + at + needle.size();  // to the next NUL
}

/// Reads the process before its mark: if the pid is reused in between, the mark belongs to a process that will not be
/// signalled.
std::optional<Marked> read_marked(pid_t pid, bool& complete) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const auto read = [&](const char* name) {
    FileText file = read_file(folder + name);
    complete = complete && !is_shortage(file.error);
    return std::move(file.text);
  };
  const auto process = parse_process(pid, read("/stat"));
  if (!process || process->is_zombie()) return std::nullopt;
  Marked marked{.process = *process, .parts = mark_parts(mark_in(read("/environ"))), .cgroup = {}};
  marked.cgroup = cgroup_line(read("/cgroup"));
  for (std::string& run : runs_in_cgroup_path(marked.cgroup)) {
    if (std::ranges::find(marked.parts, run) == marked.parts.end()) marked.parts.push_back(std::move(run));
  }
  if (marked.parts.empty()) return std::nullopt;
  return marked;
}

}  // namespace

std::optional<Process> parse_process(pid_t pid, std::string_view stat) {
  const auto name_end = stat.rfind(") ");  // the name may contain anything, so search from the end
  if (name_end == std::string_view::npos) return std::nullopt;
  std::vector<std::string_view> fields;
  for (std::size_t from = name_end + 2; from < stat.size() && fields.size() <= kStartField;) {
    const auto to = std::min(stat.find(' ', from), stat.size());
    fields.push_back(stat.substr(from, to - from));
    from = to + 1;
  }
  if (fields.size() <= kStartField || fields[0].empty()) return std::nullopt;
  Process process;
  process.pid = pid;
  process.state = fields[0][0];
  process.parent = number<pid_t>(fields[kParentField]);
  process.group = number<pid_t>(fields[kGroupField]);
  process.cpu_ticks = number<std::uint64_t>(fields[kUserTimeField]) + number<std::uint64_t>(fields[kSystemTimeField]);
  process.start = number<std::uint64_t>(fields[kStartField]);
  return process;
}

std::optional<Process> read_process(pid_t pid) {
  return parse_process(pid, read_small_file("/proc/" + std::to_string(pid) + "/stat"));
}

Process this_process() {
  Process self = read_process(::getpid()).value_or(Process());
  self.pid = ::getpid();
  return self;
}

std::vector<Process> all_processes() {
  std::vector<Process> found;
  for (const pid_t pid : ids_in("/proc")) {
    if (const auto process = read_process(pid)) found.push_back(*process);
  }
  return found;
}

std::vector<Process> descendants_of(pid_t ancestor, const std::vector<pid_t>& except) {
  if (!has_children_files()) return scan_descendants_of(ancestor, except);
  const auto above = read_process(ancestor);
  if (!above) return {};
  const Pids left_out(except.begin(), except.end());
  std::vector<Process> found = walk(*above, left_out);
  for (int walks = 1; walks < kWalksMost; ++walks) {
    const std::vector<Process> before = std::exchange(found, walk(*above, left_out));
    if (same(before, found)) break;
  }
  return found;
}

std::vector<Process> scan_descendants_of(pid_t ancestor, const std::vector<pid_t>& except) {
  const Pids left_out(except.begin(), except.end());
  std::unordered_map<pid_t, std::vector<Process>> children;
  for (const Process& process : all_processes()) {
    if (!left_out.contains(process.pid)) children[process.parent].push_back(process);
  }
  std::vector<Process> found = children[ancestor];
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto below = children.find(found[i].pid);
    if (below != children.end()) found.insert(found.end(), below->second.begin(), below->second.end());
  }
  return found;
}

std::string mark_beneath(std::string_view outer, std::string_view run) {
  return outer.empty() ? std::string(run) : std::string(outer) + "/" + std::string(run);
}

std::vector<pid_t> own_children() {
  std::vector<pid_t> found;
  siginfo_t info{};
  const bool none = ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
  if (none) return found;  // the usual case: a scan of /proc is expensive
  const pid_t self = ::getpid();
  for (const Process& process : all_processes()) {
    if (process.parent == self) found.push_back(process.pid);
  }
  return found;
}

std::vector<std::string> mark_parts(std::string_view mark) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from < mark.size();) {
    const auto to = std::min(mark.find('/', from), mark.size());
    if (to > from) parts.emplace_back(mark.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

Marks all_marked() {
  Marks marks;
  const std::vector<pid_t> pids = ids_in("/proc");
  marks.complete = !pids.empty();  // this process is one of them
  for (const pid_t pid : pids) {
    if (auto marked = read_marked(pid, marks.complete)) marks.found.push_back(std::move(*marked));
  }
  return marks;
}

std::vector<Process> marked(std::string_view run) {
  std::vector<Process> found;
  for (const Marked& each : all_marked().found) {
    if (std::ranges::find(each.parts, run) != each.parts.end()) found.push_back(each.process);
  }
  return found;
}

std::string argument_of(pid_t pid, std::size_t index) {
  const std::string words = read_small_file("/proc/" + std::to_string(pid) + "/cmdline");
  std::size_t from = 0;
  for (; index > 0; --index) {
    const auto end = words.find('\0', from);
    if (end == std::string::npos) return {};
    from = end + 1;
  }
  return from < words.size() ? words.c_str() + from : "";  // to the next NUL
}

bool signal_process(const Process& process, int signal) noexcept {
  const Fd pidfd(::pidfd_open(process.pid, 0));
  if (!pidfd) return false;
  const auto now = read_process(process.pid);
  return now && now->start == process.start && ::pidfd_send_signal(pidfd.get(), signal, nullptr, 0) == 0;
}

void signal_all(const std::vector<Process>& processes, int signal) noexcept {
  for (const Process& process : processes) {
    signal_process(process, signal);
    if (signal != SIGKILL) signal_process(process, SIGCONT);
  }
}

bool ignores(int signal) noexcept {
  struct sigaction now{};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

bool become_subreaper() noexcept {
  if (ignores(SIGCHLD)) ::signal(SIGCHLD, SIG_DFL);
  return ::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

void leave_session() noexcept {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGCONT);  // within a session the kernel does it: the parent's end orphans its group
}

Reaped reap_all(pid_t watched) noexcept {
  Reaped result;
  while (true) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) return result;  // ECHILD
    if (pid == 0) {
      result.any_left = true;
      return result;
    }
    if (pid == watched) result.status = status;
  }
}

std::optional<int> try_reap(pid_t child) noexcept {
  int status = 0;
  return ::waitpid(child, &status, WNOHANG) == child ? std::optional(status) : std::nullopt;
}

int blocking_reap(pid_t child) noexcept {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace stint::os
