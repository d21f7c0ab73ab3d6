/// Processes as the kernel shows them: who descends from whom, who carries a run's mark, and how to signal the right
/// one.
///
/// A process is named by its pid and its start time, and signalled through a pidfd that was checked against both, so
/// that a reused pid is never hit. "Gone" is never inferred from a signal that was sent. A walk reads what is below one
/// process; a scan reads all of /proc (about 2 ms with 150 processes): where thousands end at once, each with a scan,
/// that is quadratic. Any thread.
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
/// From a line of /proc/PID/stat, in which the name of a program may be anything.
[[nodiscard]] std::optional<Process> parse_process(pid_t pid, std::string_view stat);
/// Its own, which never changes: read once.
[[nodiscard]] Process this_process();

/// Every process at this moment, more or less.
[[nodiscard]] std::vector<Process> all_processes();
/// Those below `ancestor`, zombies too: they still have to be reaped. Not `except`, nor what is below them. A walk,
/// made until two in a row agree, as far as they do; a scan where the kernel has no lists of children. It can miss some
/// while others come and go: whoever ends them asks again until wait(2) says that none is left.
[[nodiscard]] std::vector<Process> descendants_of(pid_t ancestor, const std::vector<pid_t>& except = {});
/// The same by a scan: for those who have no other proof that none is left.
[[nodiscard]] std::vector<Process> scan_descendants_of(pid_t ancestor, const std::vector<pid_t>& except = {});
/// One that belongs to runs: by the mark in its environment, by the cgroup that it is in, or both. A process can empty
/// its environment; it does not leave its cgroup.
struct Marked {
  Process process;
  std::vector<std::string> parts;  // the runs, `<id>:<fence>` each, outermost first
  std::string cgroup;              // its path in cgroup v2; empty where there is none
};
struct Marks {
  std::vector<Marked> found;
  bool complete = true;  // false: for want of descriptors or memory not all could be looked at
};
/// Every living one, whatever its parent. Processes of other users that may not be read are passed over.
[[nodiscard]] Marks all_marked();
/// A word of its command line, by number; empty if it has no such word.
[[nodiscard]] std::string argument_of(pid_t pid, std::size_t index);
/// Those whose mark has `run` as a part.
[[nodiscard]] std::vector<Process> marked(std::string_view run);
/// The mark of a run that is started from a process with the mark `outer`, which may be empty.
[[nodiscard]] std::string mark_beneath(std::string_view outer, std::string_view run);
/// The children of this process at this moment.
[[nodiscard]] std::vector<pid_t> own_children();
/// True if this process was told to ignore it, as by nohup(1).
[[nodiscard]] bool ignores(int signal) noexcept;
/// The parts of a mark, outermost first.
[[nodiscard]] std::vector<std::string> mark_parts(std::string_view mark);

/// False when it is gone already or another process has its pid.
bool signal_process(const Process& process, int signal) noexcept;
/// To each; a polite signal is followed by SIGCONT, for a stopped process would not see it.
void signal_all(const std::vector<Process>& processes, int signal) noexcept;

/// The calling process becomes the parent of every orphan below it. It also stops to ignore SIGCHLD, which a caller may
/// have left to us: the kernel would then reap by itself, and what wait(2) says would be worth nothing.
bool become_subreaper() noexcept;
/// What wait(2) says of one's own children. `status` is set when `watched` is among the reaped.
struct Reaped {
  bool any_left = false;  ///< children live on; false is the proof that a subreaper has no descendant
  std::optional<int> status;
};
[[nodiscard]] Reaped reap_all(pid_t watched) noexcept;
/// The wait status of one child, if it has ended; it is reaped then.
[[nodiscard]] std::optional<int> try_reap(pid_t child) noexcept;
/// The same, waiting for it: only for a child that was killed.
int blocking_reap(pid_t child) noexcept;

}  // namespace stint::os
