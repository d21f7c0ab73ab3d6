#include "limit/listing.hpp"

#include "limit/line.hpp"
#include "os/owner.hpp"

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
  domain::LimitEntry entry;
  entry.run = record.run.substr(0, record.run.find(':'));
  entry.label = record.label;
  entry.pid = record.pid;
  entry.weight = record.weight;
  if (record.since_ms > 0) entry.since = WallTime{std::chrono::milliseconds(record.since_ms)};
  return entry;
}

domain::LimitEntry entry_of(const Slots::Holder& holder, std::uint32_t capacity) {
  if (!holder.record) return {};
  const os::SlotRecord& record = *holder.record;
  domain::LimitEntry entry = entry_of(record);
  entry.weight = 1;
  if (os::is_other_users(record)) entry.user = os::user_name(*record.user);
  entry.other_container = !os::can_see(record);
  entry.swept = holder.swept;
  entry.unjudged = holder.unjudged;
  if (record.capacity != 0 && record.capacity != capacity) entry.counts_to = record.capacity;
  return entry;
}

}  // namespace stint::limit
