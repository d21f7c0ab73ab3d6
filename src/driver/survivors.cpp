// Invariants
// 1. "Gone" needs two scans in a row that found nothing and could read everything.
// 2. An attempt counts as orphaned only if one of its processes was alive after a whole scan that did not see its
//    warden. A warden outlives all processes that it watches, so the scan would have seen it.
#include "driver/survivors.hpp"

#include "driver/ladder.hpp"
#include "driver/warden.hpp"
#include "os/cgroup.hpp"
#include "os/number.hpp"
#include "os/terminal.hpp"

#include <algorithm>
#include <csignal>
#include <map>
#include <set>
#include <string>
#include <unistd.h>

namespace stint::driver {
namespace {

using namespace std::chrono_literals;
using Leftover = domain::Survivors::Leftover;
using Trace = domain::Survivors::Trace;

constexpr int kScansThatProve = 2;  // in a row: one scan can miss a process that was forked meanwhile
constexpr Duration kLookEvery = 10ms;
constexpr std::size_t kNamedMost = 5;  // processes that a message names

/// Marked processes outside the run of this process. If this process is part of a run, so is what it started.
os::Marks marked_by_others() {
  const std::vector<std::string> own = os::mark_parts(os::environment(os::kMarkVariable));
  os::Marks marks = os::all_marked();
  std::erase_if(marks.found, [&](const os::Marked& each) {
    const bool below = !own.empty() && std::ranges::find(each.parts, own.back()) != each.parts.end();
    return below || each.process.pid == ::getpid();
  });
  return marks;
}

/// Runs, each with its last attempt that is over.
class EndedAttempts {
 public:
  explicit EndedAttempts(const std::vector<Leftover>& leftovers) {
    for (const Leftover& each : leftovers) last_[each.run] = std::max(last_[each.run], each.fence);
  }
  [[nodiscard]] bool contains(std::string_view part) const {
    const auto leftover = parse_leftover(part);
    const auto last = leftover ? last_.find(leftover->run) : last_.end();
    return last != last_.end() && leftover->fence <= last->second;
  }

 private:
  std::map<std::string, domain::Fence> last_;
};

/// The processes of ended attempts that one scan found.
struct Scan {
  std::vector<os::Process> processes;
  bool complete = true;
};
/// Adds the cgroups of the processes it finds to `cgroups`: a cgroup also has those that are forked during the scan.
Scan scan(const EndedAttempts& ended, std::set<std::string>& cgroups) {
  const os::Marks marks = marked_by_others();
  Scan result{.processes = {}, .complete = marks.complete};
  for (const os::Marked& each : marks.found) {
    bool is_over = false;
    for (const std::string& part : each.parts) {
      if (!ended.contains(part)) continue;
      is_over = true;
      std::string directory = os::cgroup_directory(each.cgroup, part);
      if (!directory.empty()) cgroups.insert(std::move(directory));
    }
    if (is_over) result.processes.push_back(each.process);
  }
  return result;
}

std::set<std::string> cgroups_of(const EndedAttempts& ended) {
  std::set<std::string> found;
  const std::string parent = os::delegated_cgroup();
  for (const std::string& run : os::cgroup_runs_below(parent)) {
    if (ended.contains(run)) found.insert(os::cgroup_path(parent, run));
  }
  return found;
}

bool is_alive(const os::Process& process) {
  const auto now = os::read_process(process.pid);
  return now && now->start == process.start && !now->is_zombie();
}

std::string name_of(const std::vector<os::Process>& processes, bool complete) {
  std::string text;
  std::size_t named = 0;
  for (const os::Process& process : processes) {
    const auto now = os::read_process(process.pid);
    if (!now || now->start != process.start || now->is_zombie()) continue;
    if (named++ == kNamedMost) return text + ", …";
    text += (text.empty() ? "pid " : ", pid ") + std::to_string(process.pid) + " (state " + now->state + ")";
  }
  if (!text.empty()) return text;
  return complete ? "a process that keeps reappearing" : "/proc can't be read: out of file descriptors or memory";
}

}  // namespace

std::optional<Leftover> parse_leftover(std::string_view part) {
  const auto colon = part.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const domain::Fence fence{os::number<std::int64_t>(part.substr(colon + 1))};
  if (fence.value <= 0) return std::nullopt;
  return Leftover{std::string(part.substr(0, colon)), fence};
}

std::vector<Leftover> HostSurvivors::found() const {
  struct Seen {
    std::vector<os::Process> processes;
    bool kept = false;
  };
  std::map<std::string, Seen> seen;
  for (const os::Marked& each : marked_by_others().found) {
    // A warden has the marks of the enclosing runs as well, and is one of their processes.
    const std::string watched = watched_by(each.process.pid);
    for (const std::string& part : each.parts) {
      if (part == watched) seen[part].kept = true;
      if (part != watched) seen[part].processes.push_back(each.process);
    }
  }
  for (const std::string& run : os::cgroup_runs_below(os::delegated_cgroup())) seen[run];
  const std::vector<std::string> own = os::mark_parts(os::environment(os::kMarkVariable));
  std::vector<Leftover> leftovers;
  for (const auto& [part, what] : seen) {
    auto leftover = parse_leftover(part);
    if (!leftover || std::ranges::find(own, part) != own.end()) continue;
    const bool alive = std::ranges::any_of(what.processes, is_alive);
    leftover->trace = what.kept ? Trace::kept : alive ? Trace::orphaned : Trace::empty;
    leftovers.push_back(std::move(*leftover));
  }
  return leftovers;
}

Task<HostSurvivors::Ending> HostSurvivors::end(std::vector<Leftover> leftovers, std::function<bool()> hurry) {
  const EndedAttempts ended(leftovers);
  std::set<std::string> cgroups = cgroups_of(ended);
  Ladder ladder(grace_, "", [&] { return scan(ended, cgroups).processes; });
  Ending ending;
  bool hurried = false;
  TimePoint give_up = TimePoint::max();
  for (int clear = 0; clear < kScansThatProve;) {
    const Scan left = scan(ended, cgroups);
    const auto is_any_left = [&] {
      return std::ranges::any_of(left.processes, is_alive) || std::ranges::any_of(cgroups, os::is_populated);
    };
    const bool none = left.complete && left.processes.empty() && !is_any_left();
    clear = none ? clear + 1 : 0;
    if (none) continue;
    TimePoint now = executor_.now();
    if (now >= give_up) {
      ending.left = name_of(left.processes, left.complete);
      break;
    }
    if (!ladder.begun()) ladder.begin(SIGTERM, now);
    if (now >= ladder.next()) {
      give_up = std::min(give_up, now + killed_max_);
      std::ranges::for_each(cgroups, os::kill_cgroup);
    }
    ladder.step(now);
    // A scan is expensive and finds nothing new until these are gone.
    do {
      if (!hurried && hurry()) {
        hurried = true;
        ladder.begin(SIGKILL, executor_.now());
      } else {
        co_await sleep_for(kLookEvery);
      }
    } while (is_any_left() && executor_.now() < ladder.next());
  }
  if (ending.left.empty()) std::ranges::for_each(cgroups, os::remove_cgroup);
  ending.processes = static_cast<std::uint32_t>(ladder.found());
  co_return ending;
}

void HostSurvivors::kill(const std::vector<Leftover>& leftovers) {
  if (leftovers.empty()) return;
  const EndedAttempts ended(leftovers);
  std::set<std::string> cgroups = cgroups_of(ended);
  const Scan left = scan(ended, cgroups);
  std::ranges::for_each(cgroups, os::kill_cgroup);
  os::signal_all(left.processes, SIGKILL);
}

}  // namespace stint::driver
