/// Starts a process by posix_spawn(3): no copy of this one's memory, no handlers, no descriptors but those named.
/// Everything that Stint opens is close-on-exec; descriptors 0 to 2 are inherited unless they are replaced.
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
  std::string program;                   // a path; no search
  std::vector<std::string> argv;         // with argv[0]
  std::vector<std::string> environment;  // `NAME=value`
  std::vector<int> keep;                 // inherited under their own number
  std::vector<std::pair<int, int>> put;  // {ours, theirs}
  std::string directory;                 // empty: ours
  const sigset_t* mask = nullptr;        // null: ours
  bool own_group = false;
  bool default_sigpipe = false;  // we may ignore it; the other must not inherit that
};

[[nodiscard]] Result<pid_t> spawn(const SpawnOptions& options);
/// The same without an exec: the new process runs `body`, in a copy of this one's memory, and ends with its answer; no
/// destructor runs. That takes a fifth of the time which this program needs to start. Only for a process with one
/// thread that stays in its directory. `program` is not used; `argv` is what others see as its command line, as far as
/// there is room for it.
[[nodiscard]] Result<pid_t> spawn_copy(const SpawnOptions& options, const std::function<int()>& body);
/// Where the command line of this process lies: main() says it.
void remember_command_line(int argc, char** argv) noexcept;

/// The environment of this process with changes; a change without `=` removes the variable.
[[nodiscard]] std::vector<std::string> environment_with(const std::vector<std::string>& changes);

/// Closes every descriptor above the standard streams that is not in `keep`: for a process that was just started and
/// must hold nothing that its starter or the starter's caller left open. 0, or the errno of what failed; then
/// descriptors may be open still.
[[nodiscard]] int close_others(std::vector<int> keep);

/// Both ends close-on-exec.
struct Pair {
  Fd ours, theirs;
};
[[nodiscard]] Result<Pair> packet_pair();    // SOCK_SEQPACKET
[[nodiscard]] Result<Pair> pipe_to_read();   // we read, they write
[[nodiscard]] Result<Pair> pipe_to_write();  // we write, they read

}  // namespace stint::os
