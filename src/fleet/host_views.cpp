#include "fleet/host_views.hpp"

#include "fleet/local_fleet.hpp"
#include "limit/listing.hpp"
#include "os/owner.hpp"

#include <algorithm>

namespace stint::fleet {
namespace {

engine::LimitView view_of(const limit::Listing& listing) {
  engine::LimitView view;
  view.name = listing.name;
  view.home = "host";
  view.capacity = listing.capacity;
  view.held = static_cast<std::int64_t>(listing.holders.size());
  view.waiting = listing.waiters.size();
  for (const limit::Slots::Holder& holder : listing.holders) {
    view.holders.push_back(limit::entry_of(holder, listing.capacity));
  }
  for (const os::SlotRecord& waiter : listing.waiters) {
    view.line.push_back(limit::entry_of(waiter));
    view.line.back().run.clear();  // a run is claimed only after its permits are held
    view.line.back().other_container = !os::can_see(waiter);
    view.line.back().place = static_cast<std::uint32_t>(view.line.size());
  }
  return view;
}

/// How many runs at the head of the line the free units suffice for.
std::uint64_t startable(const engine::LimitView& view, const store::LimitState& state) {
  if (view.paused || state.line.empty()) return 0;
  if (!view.capacity) return state.waiting;
  std::int64_t free = std::int64_t{*view.capacity} - view.held;
  std::uint64_t runs = 0;
  for (const store::LimitWaiter& each : state.line) {
    if (each.weight > free) return runs;
    free -= each.weight;
    ++runs;
  }
  const auto rest = static_cast<std::uint64_t>(free / std::max<std::int64_t>(1, state.line.back().weight));
  return std::min(state.waiting, runs + rest);
}

}  // namespace

void number_places(std::vector<domain::LimitEntry>& line) {
  for (std::size_t i = 0; i < line.size(); ++i) line[i].place = static_cast<std::uint32_t>(i + 1);
}

void put_runs_in_line(engine::LimitView& view, store::LimitState state, std::int64_t own_pid) {
  const auto is_own = [&](const domain::LimitEntry& entry) { return entry.pid == own_pid && !entry.other_container; };
  const auto first = std::ranges::find_if(view.line, is_own);
  const auto place = static_cast<std::size_t>(first - view.line.begin());
  view.waiting -= std::min<std::uint64_t>(view.waiting, std::erase_if(view.line, is_own));
  const std::uint64_t begins = startable(view, state);
  view.waiting += state.waiting - std::min(begins, state.waiting);
  std::vector<domain::LimitEntry> runs;
  for (store::LimitWaiter& each : state.line) runs.push_back(entry_of(std::move(each)));
  runs.erase(runs.begin(), runs.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(begins, runs.size())));
  view.line.insert(view.line.begin() + static_cast<std::ptrdiff_t>(place), std::make_move_iterator(runs.begin()),
                   std::make_move_iterator(runs.end()));
  number_places(view.line);
}

std::vector<engine::LimitView> blocking_host_limits(const limit::Homes& homes, const agent::Settings& settings,
                                                    const project::Snapshot* snapshot) {
  std::map<std::string, limit::HostLimit> limits;  // an agent's request has the capacity; the limit's files may not
  for (limit::HostLimit& each : limit::blocking_all_limits(homes, settings)) limits[each.stem()] = std::move(each);
  if (snapshot != nullptr) {
    for (const auto& [agent, uses] : snapshot->host_limits) {
      const auto requests = limit::requests_of(*snapshot, agent);
      if (!requests) continue;
      for (const limit::HostRequest& request : *requests) limits[request.limit.stem()] = request.limit;
    }
  }
  std::vector<engine::LimitView> views;
  for (const auto& [stem, each] : limits) views.push_back(view_of(limit::list(each)));
  return views;
}

}  // namespace stint::fleet
