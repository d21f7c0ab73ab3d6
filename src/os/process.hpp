/// Processes as the kernel shows them: descendants, carriers of a run's mark, and safe signals.
///
/// A process is identified by its pid and its start time, and signalled through a pidfd that was checked against
/// both, so that a reused pid is never hit. "Gone" is never inferred from a sent signal. A walk reads the descendants
/// of one process; a scan reads all of /proc (about 2 ms with 150 processes): when thousands end at once, each with a
/// scan, that is quadratic. Any thread.
#pragma once

#include "os/fd.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace stint::os {

/// Environment variable that every process of a run carries: `<run>:<fence>`. Nested runs append theirs: `outer/inner`.
inline constexpr char kMarkVariable[] = "STINT_RUN";

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  char state = '?';
  std::uint64_t start = 0;      // clock ticks since boot
  std::uint64_t cpu_ticks = 0;  // user and system time, its own

  [[nodiscard]] bool is_zombie() const noexcept { return state == 'Z' || state == 'X'; }
  [[nodiscard]] bool is_stopped() const noexcept { return state == 'T' || state == 't'; }
};

[[nodiscard]] std::optional<Process> read_process(pid_t pid);
/// Parses a line of /proc/PID/stat, in which the program's name may contain anything.
[[nodiscard]] std::optional<Process> parse_process(pid_t pid, std::string_view stat);
/// This process, which never changes: read once.
[[nodiscard]] Process this_process();

/// All processes; not an atomic snapshot.
[[nodiscard]] std::vector<Process> all_processes();
/// The descendants of `ancestor`, including zombies, which still have to be reaped. Excludes `except` and their
/// descendants. Walks until two walks in a row agree, up to a bound; scans if the kernel has no lists of children. It
/// can miss some while processes come and go: a caller that ends them must repeat until wait(2) reports that none is
/// left.
[[nodiscard]] std::vector<Process> descendants_of(pid_t ancestor, const std::vector<pid_t>& except = {});
/// The same by a scan: for callers that have no other proof that none is left.
[[nodiscard]] std::vector<Process> scan_descendants_of(pid_t ancestor, const std::vector<pid_t>& except = {});
/// A process that belongs to runs: by the mark in its environment, by its cgroup, or both. A process can empty its
/// environment, but does not leave its cgroup.
struct Marked {
  Process process;
  std::vector<std::string> parts;  // the runs, `<id>:<fence>` each, outermost first
  std::string cgroup;              // its cgroup v2 path; empty: none
};
struct Marks {
  std::vector<Marked> found;
  bool complete = true;  // false: not all could be read, for lack of descriptors or memory
};
/// Every living one, whatever its parent. Skips processes of other users that may not be read.
[[nodiscard]] Marks all_marked();
/// A word of its command line, by index; empty: none.
[[nodiscard]] std::string argument_of(pid_t pid, std::size_t index);
/// Processes whose mark has `run` as a part.
[[nodiscard]] std::vector<Process> marked(std::string_view run);
/// The mark of a run that is started from a process with the mark `outer`, which may be empty.
[[nodiscard]] std::string mark_beneath(std::string_view outer, std::string_view run);
/// The current children of this process.
[[nodiscard]] std::vector<pid_t> own_children();
/// Whether this process ignores the signal, as set by nohup(1).
[[nodiscard]] bool ignores(int signal) noexcept;
/// The parts of a mark, outermost first.
[[nodiscard]] std::vector<std::string> mark_parts(std::string_view mark);

/// False if it is already gone or another process has its pid.
bool signal_process(const Process& process, int signal) noexcept;
/// Signals each; a catchable signal is followed by SIGCONT, because a stopped process would not receive it.
void signal_all(const std::vector<Process>& processes, int signal) noexcept;

/// Makes this process the parent of every orphan below it. Also stops ignoring SIGCHLD, which it may have inherited:
/// the kernel would then reap by itself, and wait(2) would prove nothing.
bool become_subreaper() noexcept;
/// Moves this process into a new session, without a terminal. It must not lead a process group. If it is stopped when
/// the thread that forked it ends, it is continued.
void leave_session() noexcept;
/// The result of wait(2) for own children. `status` is set when `watched` is among the reaped.
struct Reaped {
  bool any_left = false;  ///< children are alive; false proves that a subreaper has no descendant
  std::optional<int> status;
};
[[nodiscard]] Reaped reap_all(pid_t watched) noexcept;
/// The wait status of one child if it has ended, which is then reaped.
[[nodiscard]] std::optional<int> try_reap(pid_t child) noexcept;
/// The same, blocking: only for a child that was killed.
int blocking_reap(pid_t child) noexcept;

}  // namespace stint::os
