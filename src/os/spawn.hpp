/// Starts a process by posix_spawn(3): no copy of this one's memory, no signal handlers, only the named descriptors.
/// Every descriptor that Stint opens is close-on-exec; 0 to 2 are inherited unless they are replaced.
#pragma once

#include "os/fd.hpp"

#include <csignal>
#include <functional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace stint::os {

struct SpawnOptions {
  std::string program;                   // a path; PATH is not searched
  std::vector<std::string> argv;         // with argv[0]
  std::vector<std::string> environment;  // `NAME=value`
  std::vector<int> keep;                 // inherited with the same number
  std::vector<std::pair<int, int>> put;  // {here, in the child}
  std::string directory;                 // empty: that of this process
  const sigset_t* mask = nullptr;        // null: that of this process
  bool own_group = false;
  bool default_signals = false;  // this process may ignore some (a shell's background job: SIGINT); the child does not
};

[[nodiscard]] Result<pid_t> spawn(const SpawnOptions& options);
/// The same without an exec: the new process runs `body` in a copy of this one's memory and exits with its return
/// value; no destructor runs. That takes a fifth of the time that this program needs to start. Only for a process
/// with one thread, and without a change of directory. Ignores `program`; `argv` is the command line that other
/// processes see, as far as there is room.
[[nodiscard]] Result<pid_t> spawn_copy(const SpawnOptions& options, const std::function<int()>& body);
/// Records where the command line of this process is; main() calls it.
void remember_command_line(int argc, char** argv) noexcept;

/// The environment of this process with changes; a change without `=` removes the variable.
[[nodiscard]] std::vector<std::string> environment_with(const std::vector<std::string>& changes);

/// Closes every descriptor above the standard streams that is not in `keep`: for a process that was just started and
/// must hold no descriptor that its parent left open. Returns 0, or the errno of a failure; descriptors may then
/// still be open.
[[nodiscard]] int close_others(std::vector<int> keep);

/// Both ends are close-on-exec.
struct Pair {
  Fd ours, theirs;
};
[[nodiscard]] Result<Pair> packet_pair();    // SOCK_SEQPACKET
[[nodiscard]] Result<Pair> pipe_to_read();   // the caller reads
[[nodiscard]] Result<Pair> pipe_to_write();  // the caller writes

}  // namespace stint::os
