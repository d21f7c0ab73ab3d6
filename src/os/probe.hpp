/// Probes what a host offers, for `stint doctor`: the abilities of a directory's file system, and the output of
/// programs. Tries each ability instead of relying on tables, and leaves nothing behind. Blocking; any thread.
#pragma once

#include "stint/time.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace stint::os {

/// A directory as a home of lock files. If it does not exist, its nearest existing ancestor is probed instead.
struct DirectoryProbe {
  std::string tried;               ///< the probed directory
  bool exists = false;             ///< the requested directory itself, not only an ancestor
  std::string problem;             ///< why no file can be created there; empty: one can. If set, the rest is unknown
  std::string file_system;         ///< "ext4", "nfs", …; its magic number if the name is unknown
  std::uint64_t free_bytes = 0;    ///< for this user
  std::uint64_t free_files = 0;    ///< inodes
  bool counts_files = false;       ///< false: the file system does not report inodes
  bool locks = false;              ///< flock and byte-range locks of one open file exclude another one
  bool notices = false;            ///< inotify reports a close
  bool no_more_instances = false;  ///< … because this user has no inotify instance left
};
[[nodiscard]] DirectoryProbe blocking_probe_directory(const std::string& directory);

/// The name of a file system's magic number, as returned by statfs(2).
[[nodiscard]] std::string file_system_name(std::uint64_t magic);

/// The output of a program, both streams together, cut at kAnswerMax.
struct Question {
  std::vector<std::string> argv;  ///< argv[0] is a path
  std::string directory;          ///< empty: that of this process
};
struct Answer {
  enum class End : std::uint8_t { exited, signalled, late, not_started };
  End end = End::not_started;
  int status = 0;  ///< exit status, signal or errno
  std::string text;
};
inline constexpr std::size_t kAnswerMax = 16 * 1024;

/// Runs all programs at once, each for at most `most`. Each has its own process group and no terminal input;
/// processes that it leaves in the group are killed.
[[nodiscard]] std::vector<Answer> blocking_ask(const std::vector<Question>& questions, Duration most);

/// Ends all descendants of this process, a subreaper, and waits until they are gone: what a program left running
/// outside of its group. False if one is still there after a second; it may be in an uninterruptible sleep.
bool blocking_end_leftovers();

/// The path of a program by PATH; empty: not found. Skips relative parts of PATH: they would depend on the current
/// folder.
[[nodiscard]] std::string find_program(const std::string& name, const std::string& path_variable);

/// Soft limits of this process; UINT64_MAX: none.
struct ResourceLimits {
  std::uint64_t descriptors = 0, descriptors_hard = 0;
  std::uint64_t processes = 0;
};
[[nodiscard]] ResourceLimits resource_limits();

/// The maximum number of inotify instances per user; 0: unknown.
[[nodiscard]] std::uint64_t inotify_instances_max();

/// What a run's cgroup below `parent` can do: creates one, checks it, removes it.
struct CgroupProbe {
  bool made = false;
  bool kill = false;    ///< cgroup.kill: Linux 5.14
  bool memory = false;  ///< a memory limit was accepted
};
[[nodiscard]] CgroupProbe blocking_probe_cgroup(const std::string& parent);

}  // namespace stint::os
