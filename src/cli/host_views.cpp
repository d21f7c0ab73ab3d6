#include "cli/host_views.hpp"

#include "cli/fleet_text.hpp"
#include "limit/listing.hpp"

#include <fmt/format.h>

namespace stint::cli {
namespace {

std::string owner(const os::SlotRecord& record, WallTime now) {
  const WallTime since{std::chrono::milliseconds(record.since_ms)};
  return fmt::format("{} (pid {}, {})", record.label.empty() ? "-" : record.label, record.pid, age_text(now - since));
}

engine::LimitView view_of(const limit::Listing& listing, WallTime now) {
  engine::LimitView view;
  view.name = listing.name;
  view.home = "host";
  view.capacity = listing.capacity;
  view.held = static_cast<std::int64_t>(listing.holders.size());
  view.holder_runs.emplace();
  for (const limit::Slots::Holder& holder : listing.holders) {
    const std::string mark = holder.record ? holder.record->run : std::string();
    view.holder_runs->push_back(mark.substr(0, mark.find(':')));
    view.holders.push_back(holder.record ? owner(*holder.record, now) : "another tool, by flock");
  }
  for (const os::SlotRecord& waiter : listing.waiters) view.waiters.push_back(owner(waiter, now));
  return view;
}

}  // namespace

std::vector<engine::LimitView> blocking_host_limits(const HostPlace& place, WallTime now,
                                                    const HostRequests* requests) {
  std::map<std::string, limit::HostLimit> limits;  // what an agent asks for knows its capacity, its files may not
  for (limit::HostLimit& each : blocking_all_limits(place.homes, place.settings)) limits[each.stem()] = std::move(each);
  if (requests != nullptr) {
    for (const auto& [agent, wanted] : *requests) {
      for (const limit::HostRequest& request : wanted) limits[request.limit.stem()] = request.limit;
    }
  }
  std::vector<engine::LimitView> views;
  for (const auto& [stem, each] : limits) views.push_back(view_of(limit::list(each), now));
  return views;
}

}  // namespace stint::cli
