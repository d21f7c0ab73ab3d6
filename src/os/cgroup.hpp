/// A cgroup v2 per run, if one is delegated to this process: `cgroup.kill` ends a whole process tree at once, and
/// `memory.max` bounds it. Without a delegated cgroup everything works by walks alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace stint::os {

/// The directory of this process's cgroup; empty: no cgroup v2.
[[nodiscard]] std::string own_cgroup();
/// The directory below it in which cgroups of runs may be created; empty: not delegated.
[[nodiscard]] std::string delegated_cgroup();
/// The path of a run's cgroup; empty if `parent` is.
[[nodiscard]] std::string cgroup_path(const std::string& parent, std::string_view run);
/// Whether the path is that of a run's cgroup: a path read from a file is trusted no further than this.
[[nodiscard]] bool is_cgroup_of(const std::string& path, std::string_view run);

bool make_cgroup(const std::string& path) noexcept;
/// fork(2) with the child created in `cgroup` (empty: in the own one). A process that moves itself there waits 4 to
/// 10 ms for the whole kernel; one that is created there does not wait. Only for a process with one thread whose
/// child execs at once. If the cgroup is unavailable, the child is in the own one.
pid_t fork_into_cgroup(const std::string& cgroup) noexcept;
[[nodiscard]] inline std::string procs_file(const std::string& cgroup) { return cgroup + "/cgroup.procs"; }
/// False if the kernel offers no memory limit here.
bool limit_memory(const std::string& path, std::uint64_t bytes) noexcept;
/// How many of its processes the OOM killer ended.
[[nodiscard]] std::uint64_t out_of_memory_kills(const std::string& path);
/// Whether a process lives in it or below it. False if the cgroup is gone; true if it cannot be read for another
/// reason (no descriptor is left): such a cgroup may still have processes.
[[nodiscard]] bool is_populated(const std::string& path);
/// The runs that have a cgroup directly below `parent`: `<id>:<fence>` each.
[[nodiscard]] std::vector<std::string> cgroup_runs_below(const std::string& parent);
/// The cgroup v2 path in the text of a /proc/PID/cgroup; empty: none.
[[nodiscard]] std::string_view cgroup_line(std::string_view text);
/// The runs whose cgroups contain such a path, outermost first.
[[nodiscard]] std::vector<std::string> runs_in_cgroup_path(std::string_view path);
/// The directory of a run's cgroup, from the path of a process in it or below it; empty: the path is not below it.
[[nodiscard]] std::string cgroup_directory(std::string_view path, std::string_view run);
void kill_cgroup(const std::string& path) noexcept;
void remove_cgroup(const std::string& path) noexcept;

}  // namespace stint::os
