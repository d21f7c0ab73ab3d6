#include "driver/survivors.hpp"

#include "driver/ladder.hpp"
#include "os/cgroup.hpp"
#include "os/number.hpp"
#include "os/terminal.hpp"

#include <algorithm>
#include <csignal>
#include <map>
#include <string>
#include <unistd.h>

namespace stint::driver {
namespace {

using namespace std::chrono_literals;
using Attempt = domain::Survivors::Attempt;

constexpr int kScansThatProve = 2;  // in a row: one can miss a process that is born behind its back
constexpr Duration kLookEvery = 10ms;

/// Those of others. If this process is itself a part of a run, what it started carries that mark as well.
std::vector<os::Marked> marked_by_others() {
  const std::string own = os::environment(os::kMarkVariable);
  std::vector<os::Marked> found = os::all_marked();
  std::erase_if(found, [&](const os::Marked& each) {
    const bool below = !own.empty() && (each.mark == own || each.mark.starts_with(own + "/"));
    return below || each.process.pid == ::getpid();
  });
  return found;
}

using Last = std::map<std::string, std::int64_t>;  // by run, the last fence that is over

std::vector<os::Process> processes_of(const Last& over) {
  const auto is_over = [&](const std::string& part) {
    const auto attempt = parse_attempt(part);
    const auto last = attempt ? over.find(attempt->run) : over.end();
    return last != over.end() && attempt->fence <= last->second;
  };
  std::vector<os::Process> found;
  for (const os::Marked& each : marked_by_others()) {
    if (std::ranges::any_of(os::mark_parts(each.mark), is_over)) found.push_back(each.process);
  }
  return found;
}

/// Of those who have emptied their environment, a cgroup still knows.
std::vector<std::string> cgroups_of(const Last& over) {
  std::vector<std::string> found;
  for (const auto& [run, fence] : over) {
    std::string path = os::cgroup_path(os::delegated_cgroup(), run + ":" + std::to_string(fence));
    if (!path.empty() && ::access(path.c_str(), F_OK) == 0) found.push_back(std::move(path));
  }
  return found;
}

bool is_alive(const os::Process& process) {
  const auto now = os::read_process(process.pid);
  return now && now->start == process.start && !now->is_zombie();
}

}  // namespace

std::optional<Attempt> parse_attempt(std::string_view part) {
  const auto colon = part.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const auto fence = os::number<std::int64_t>(part.substr(colon + 1));
  if (fence <= 0) return std::nullopt;
  return Attempt{std::string(part.substr(0, colon)), fence};
}

std::vector<Attempt> HostSurvivors::alive() const {
  const auto own = os::mark_parts(os::environment(os::kMarkVariable));
  std::vector<std::string> seen = own;
  std::vector<Attempt> found;
  for (const os::Marked& each : marked_by_others()) {
    for (const std::string& part : os::mark_parts(each.mark)) {
      if (std::ranges::find(seen, part) != seen.end()) continue;
      seen.push_back(part);
      if (auto attempt = parse_attempt(part)) found.push_back(std::move(*attempt));
    }
  }
  return found;
}

Task<std::uint32_t> HostSurvivors::end(std::vector<Attempt> attempts) {
  return end(std::move(attempts), [] { return false; });
}

Task<std::uint32_t> HostSurvivors::end(std::vector<Attempt> attempts, std::function<bool()> hurry) {
  Last over;
  for (const Attempt& each : attempts) over[each.run] = std::max(over[each.run], each.fence);
  const std::vector<std::string> cgroups = cgroups_of(over);
  Ladder ladder(grace_, "", [&] { return processes_of(over); });
  bool hurried = false;
  for (int clear = 0; clear < kScansThatProve;) {
    const std::vector<os::Process> left = processes_of(over);
    const auto is_anybody_left = [&] {
      return std::ranges::any_of(left, is_alive) || std::ranges::any_of(cgroups, os::is_populated);
    };
    clear = left.empty() && !is_anybody_left() ? clear + 1 : 0;
    if (clear > 0) continue;
    if (!ladder.begun()) ladder.begin(SIGTERM, executor_.now());
    if (executor_.now() >= ladder.next()) std::ranges::for_each(cgroups, os::kill_cgroup);
    ladder.step(executor_.now());
    // Until these are gone there is nothing new to be seen, and a scan is dear.
    while (is_anybody_left() && executor_.now() < ladder.next()) {
      if (!hurried && hurry()) {
        hurried = true;
        ladder.begin(SIGKILL, executor_.now());
      } else {
        co_await sleep_for(kLookEvery);
      }
    }
  }
  std::ranges::for_each(cgroups, os::remove_cgroup);
  co_return static_cast<std::uint32_t>(ladder.found());
}

}  // namespace stint::driver
