/// A host limit as people see it: who holds it, who waits in which order. Looks only: nothing is locked or made.
#pragma once

#include "domain/limit_entry.hpp"
#include "limit/host_limit.hpp"
#include "limit/slots.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace stint::limit {

inline constexpr std::size_t kListedWaitersMax = 1000;

struct Listing {
  std::string name;
  std::uint32_t capacity = 0;
  bool resized = false;  ///< by hand: its capacity file overrides the configuration
  std::vector<Slots::Holder> holders;
  std::vector<os::SlotRecord> waiters;  ///< in order
};

/// `limit.capacity` 0: not configured; then it is what the last holder counted to, or the number of its files.
[[nodiscard]] Listing list(const HostLimit& limit);

/// A ticket in the line, and a slot that is held, as every limit lists them. `capacity`: of the limit.
[[nodiscard]] domain::LimitEntry entry_of(const os::SlotRecord& record);
[[nodiscard]] domain::LimitEntry entry_of(const Slots::Holder& holder, std::uint32_t capacity);

}  // namespace stint::limit
