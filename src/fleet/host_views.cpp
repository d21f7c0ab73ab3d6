#include "fleet/host_views.hpp"

#include "limit/listing.hpp"

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
    view.line.back().place = static_cast<std::uint32_t>(view.line.size());
  }
  return view;
}

}  // namespace

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
