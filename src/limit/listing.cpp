#include "limit/listing.hpp"

#include "limit/line.hpp"

#include <algorithm>
#include <unistd.h>

namespace stint::limit {

Listing list(const HostLimit& limit) {
  Listing listing;
  listing.name = limit.name;
  listing.capacity = capacity_now(limit);
  listing.resized = ::access(limit.capacity_path().c_str(), F_OK) == 0;
  Slots slots(limit, {}, {});
  slots.open_existing();
  listing.holders = slots.holders();
  if (listing.capacity == 0) {
    for (const Slots::Holder& holder : listing.holders) {
      if (holder.record) listing.capacity = std::max(listing.capacity, holder.record->capacity);
    }
  }
  if (listing.capacity == 0) listing.capacity = static_cast<std::uint32_t>(slots.size());
  if (::access(limit.line_path().c_str(), F_OK) == 0) {
    if (const auto line = Line::open(limit)) listing.waiters = line->tickets(kListedWaitersMax);
  }
  return listing;
}

domain::LimitEntry entry_of(const os::SlotRecord& record) {
  return {.run = record.run.substr(0, record.run.find(':')),
          .label = record.label,
          .pid = record.pid,
          .weight = record.weight,
          .since = WallTime{std::chrono::milliseconds(record.since_ms)}};
}

domain::LimitEntry entry_of(const Slots::Holder& holder) {
  domain::LimitEntry entry = holder.record ? entry_of(*holder.record) : domain::LimitEntry();
  entry.weight = 1;
  return entry;
}

}  // namespace stint::limit
