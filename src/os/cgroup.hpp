/// A cgroup v2 per run, where one is delegated to us: `cgroup.kill` ends a whole tree at once, whatever it does, and
/// `memory.max` bounds it. Without a delegated one everything works by walks alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace stint::os {

/// The directory of the cgroup this process is in; empty when there is no cgroup v2.
[[nodiscard]] std::string own_cgroup();
/// The directory below ours in which runs may be made; empty when ours is not delegated to us.
[[nodiscard]] std::string delegated_cgroup();
/// Where a run's cgroup is; empty when there is no `parent`.
[[nodiscard]] std::string cgroup_path(const std::string& parent, std::string_view run);
/// True if the path is that of a run's cgroup: a path out of a file is trusted no further than this.
[[nodiscard]] bool is_cgroup_of(const std::string& path, std::string_view run);

bool make_cgroup(const std::string& path) noexcept;
/// fork(2), the child born in `cgroup` (empty: in ours). A process that moves there by itself waits 4 to 10 ms for the
/// whole kernel to notice; one that is born there waits for nobody. Only for a process with one thread whose child goes
/// on to exec at once. If the cgroup can't be had, the child is in ours.
pid_t fork_into_cgroup(const std::string& cgroup) noexcept;
[[nodiscard]] inline std::string procs_file(const std::string& cgroup) { return cgroup + "/cgroup.procs"; }
/// False if the kernel offers no memory limit here.
bool limit_memory(const std::string& path, std::uint64_t bytes) noexcept;
/// How many of its processes the kernel ended for want of memory.
[[nodiscard]] std::uint64_t out_of_memory_kills(const std::string& path);
/// Whether a process lives in it or below it. False if the cgroup is gone; true if that can't be read for another
/// reason (no descriptor is left): such a cgroup may well have processes.
[[nodiscard]] bool is_populated(const std::string& path);
/// The runs that have a cgroup right below `parent`: `<id>:<fence>` each.
[[nodiscard]] std::vector<std::string> cgroup_runs_below(const std::string& parent);
/// The path of cgroup v2 in the text of a /proc/PID/cgroup; empty if there is none.
[[nodiscard]] std::string_view cgroup_line(std::string_view text);
/// The runs in whose cgroups such a path is, outermost first.
[[nodiscard]] std::vector<std::string> runs_in_cgroup_path(std::string_view path);
/// The directory of a run's cgroup, by the path of a process that is in it or below it; empty if it is not.
[[nodiscard]] std::string cgroup_directory(std::string_view path, std::string_view run);
void kill_cgroup(const std::string& path) noexcept;
void remove_cgroup(const std::string& path) noexcept;

}  // namespace stint::os
