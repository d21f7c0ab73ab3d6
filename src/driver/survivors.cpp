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
#include <functional>
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

/// Marked processes outside the run of this process. If this process is part of a run, so is what it started.
os::Marks blocking_find_marked() {
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
Scan blocking_scan(const EndedAttempts& ended, std::set<std::string>& cgroups) {
  const os::Marks marks = blocking_find_marked();
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

std::set<std::string> blocking_find_cgroups(const EndedAttempts& ended) {
  std::set<std::string> found;
  const std::string parent = os::delegated_cgroup();
  for (const std::string& run : os::cgroup_runs_below(parent)) {
    if (ended.contains(run)) found.insert(os::cgroup_path(parent, run));
  }
  return found;
}

bool blocking_is_alive(const os::Process& process) {
  const auto now = os::read_process(process.pid);
  return now && now->start == process.start && !now->is_zombie();
}

std::string blocking_name(const std::vector<os::Process>& processes, bool complete) {
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

std::vector<Leftover> blocking_find_leftovers() {
  struct Seen {
    std::vector<os::Process> processes;
    bool kept = false;
  };
  std::map<std::string, Seen> seen;
  for (const os::Marked& each : blocking_find_marked().found) {
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
    const bool alive = std::ranges::any_of(what.processes, blocking_is_alive);
    leftover->trace = what.kept ? Trace::kept : alive ? Trace::orphaned : Trace::empty;
    leftovers.push_back(std::move(*leftover));
  }
  return leftovers;
}

/// Ends the processes of some attempts. Each call scans or reads /proc, so it runs in the blocking pool, one at a time;
/// end() owns the object and waits for the call.
class LeftoverEnder {
 public:
  LeftoverEnder(const std::vector<Leftover>& leftovers, Duration grace, Duration killed_max)
      : ended_(leftovers),
        killed_max_(killed_max),
        ladder_(grace, "", std::bind_front(&LeftoverEnder::blocking_find_targets, this)) {}

  /// Scans, and sends the signals that are due. True: it is over, because nothing is left or the time is up.
  bool blocking_step(TimePoint now) {
    if (!begun_) cgroups_ = blocking_find_cgroups(ended_);
    begun_ = true;
    for (int clear = 0; clear < kScansThatProve; ++clear) {
      left_ = blocking_scan(ended_, cgroups_);
      const bool none = left_.complete && left_.processes.empty() && !blocking_is_any_left();
      if (!none) return blocking_signal(now);
    }
    std::ranges::for_each(cgroups_, os::remove_cgroup);
    return true;
  }
  /// Of the processes that the last scan found.
  [[nodiscard]] bool blocking_is_any_left() const {
    return std::ranges::any_of(left_.processes, blocking_is_alive) || std::ranges::any_of(cgroups_, os::is_populated);
  }
  /// Skips the grace period.
  void blocking_hurry(TimePoint now) { ladder_.begin(SIGKILL, now); }

  [[nodiscard]] TimePoint next() const noexcept { return ladder_.next(); }
  [[nodiscard]] domain::Survivors::Ending ending() const {
    return {.processes = static_cast<std::uint32_t>(ladder_.found()), .left = given_up_};
  }

 private:
  std::vector<os::Process> blocking_find_targets() { return blocking_scan(ended_, cgroups_).processes; }
  bool blocking_signal(TimePoint now) {
    if (now >= give_up_) {
      given_up_ = blocking_name(left_.processes, left_.complete);
      return true;
    }
    if (!ladder_.begun()) ladder_.begin(SIGTERM, now);
    if (now >= ladder_.next()) {
      give_up_ = std::min(give_up_, now + killed_max_);
      std::ranges::for_each(cgroups_, os::kill_cgroup);
    }
    ladder_.step(now);
    return false;
  }

  const EndedAttempts ended_;
  const Duration killed_max_;
  bool begun_ = false;
  std::set<std::string> cgroups_;
  Ladder ladder_;
  Scan left_;
  TimePoint give_up_ = TimePoint::max();
  std::string given_up_;
};

void blocking_kill(const std::vector<Leftover>& leftovers) {
  const EndedAttempts ended(leftovers);
  std::set<std::string> cgroups = blocking_find_cgroups(ended);
  const Scan left = blocking_scan(ended, cgroups);
  std::ranges::for_each(cgroups, os::kill_cgroup);
  os::signal_all(left.processes, SIGKILL);
}

}  // namespace

std::optional<Leftover> parse_leftover(std::string_view part) {
  const auto colon = part.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const domain::Fence fence{os::number<std::int64_t>(part.substr(colon + 1))};
  if (fence.value <= 0) return std::nullopt;
  return Leftover{std::string(part.substr(0, colon)), fence};
}

Task<Result<std::vector<Leftover>>> HostSurvivors::find() {
  co_return co_await offload(scans_, blocking_find_leftovers);
}

Task<HostSurvivors::Ending> HostSurvivors::end(std::vector<Leftover> leftovers, std::function<bool()> hurry) {
  LeftoverEnder ender(leftovers, grace_, killed_max_);
  const auto unread = [](const Error& error) { return Ending{.left = "/proc can't be read: " + error.describe()}; };
  bool hurried = false;
  while (true) {
    const auto over = co_await offload(scans_, [&, now = executor_.now()] { return ender.blocking_step(now); });
    if (!over) co_return unread(over.error());
    if (*over) co_return ender.ending();
    // A scan is expensive and finds nothing new until these are gone.
    for (bool any = true; any;) {
      if (!hurried && hurry()) {
        hurried = true;
        const auto begun = co_await offload(scans_, [&, now = executor_.now()] { ender.blocking_hurry(now); });
        if (!begun) co_return unread(begun.error());
      } else {
        co_await sleep_for(kLookEvery);
      }
      const auto left = co_await offload(scans_, [&] { return ender.blocking_is_any_left(); });
      if (!left) co_return unread(left.error());
      any = *left && executor_.now() < ender.next();
    }
  }
}

Task<> HostSurvivors::kill(std::vector<Leftover> leftovers) {
  if (leftovers.empty()) co_return;
  (void)co_await offload(scans_, [&] { blocking_kill(leftovers); });
}

}  // namespace stint::driver
