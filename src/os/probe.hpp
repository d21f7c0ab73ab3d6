/// Looks at what a host offers, for `stint doctor`: what a directory's file system can do, and what a program says when
/// it is asked. Tries things instead of believing tables, and leaves nothing behind. Blocking; any thread.
#pragma once

#include "stint/time.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace stint::os {

/// A directory as a home of lock files. If it does not exist, its nearest ancestor that does is tried in its place.
struct DirectoryProbe {
  std::string tried;               ///< the directory in which it was tried
  bool exists = false;             ///< the one asked for, not only an ancestor
  std::string problem;             ///< why no file can be made there; empty: one can. The rest is then not known
  std::string file_system;         ///< "ext4", "nfs", …; its number if it has no name here
  std::uint64_t free_bytes = 0;    ///< for this user
  std::uint64_t free_files = 0;    ///< inodes
  bool counts_files = false;       ///< some file systems have no such number
  bool locks = false;              ///< flock and byte ranges of one open file keep another one out
  bool notices = false;            ///< a close is heard of by inotify
  bool no_more_instances = false;  ///< … because this user has no instance of inotify left
};
[[nodiscard]] DirectoryProbe blocking_probe_directory(const std::string& directory);

/// The name of a file system's magic number, as statfs(2) gives it.
[[nodiscard]] std::string file_system_name(std::uint64_t magic);

/// What a program said, both streams together, cut at kAnswerMax.
struct Question {
  std::vector<std::string> argv;  ///< argv[0] is a path
  std::string directory;          ///< empty: ours
};
struct Answer {
  enum class End : std::uint8_t { exited, signalled, late, not_started };
  End end = End::not_started;
  int status = 0;  ///< exit status, signal or errno
  std::string text;
};
inline constexpr std::size_t kAnswerMax = 16 * 1024;

/// All at once, none for longer than `most`. Each is in a process group of its own, without a terminal's input; what it
/// leaves running in the group is killed.
[[nodiscard]] std::vector<Answer> blocking_ask(const std::vector<Question>& questions, Duration most);

/// Ends everything below this process, a subreaper, and sees it go: what a program that was asked left behind outside
/// of its group. False if something is still there after a second; it may be in a sleep that no signal ends.
bool blocking_end_leftovers();

/// Where a program is by PATH; empty if nowhere. Relative parts of PATH are passed over: they name what the current
/// folder holds.
[[nodiscard]] std::string find_program(const std::string& name, const std::string& path_variable);

/// Soft limits of this process; UINT64_MAX: none.
struct ResourceLimits {
  std::uint64_t descriptors = 0, descriptors_hard = 0;
  std::uint64_t processes = 0;
};
[[nodiscard]] ResourceLimits resource_limits();

/// How many instances of inotify a user may have; 0 if it is not known.
[[nodiscard]] std::uint64_t inotify_instances_max();

/// What a run's cgroup below `parent` could do: made, looked at, removed.
struct CgroupProbe {
  bool made = false;
  bool kill = false;    ///< cgroup.kill: Linux 5.14
  bool memory = false;  ///< a limit was taken
};
[[nodiscard]] CgroupProbe blocking_probe_cgroup(const std::string& parent);

}  // namespace stint::os
