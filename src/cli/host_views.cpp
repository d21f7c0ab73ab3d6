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

}  // namespace

std::vector<engine::LimitView> blocking_host_limits(const HostPlace& place, WallTime now) {
  std::vector<engine::LimitView> views;
  for (const limit::HostLimit& each : blocking_all_limits(place.homes, place.settings)) {
    const limit::Listing listing = limit::list(each);
    engine::LimitView& view = views.emplace_back();
    view.name = listing.name;
    view.home = "host";
    view.capacity = listing.capacity;
    view.held = static_cast<std::int64_t>(listing.holders.size());
    for (const limit::Slots::Holder& holder : listing.holders) {
      view.holders.push_back(holder.record ? owner(*holder.record, now) : "another tool, by flock");
    }
    for (const os::SlotRecord& waiter : listing.waiters) view.waiters.push_back(owner(waiter, now));
  }
  return views;
}

}  // namespace stint::cli
