/// A host limit for display: its holders, and its waiters in order. Read-only: locks and creates nothing.
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
  bool resized = false;  ///< its capacity file overrides the configuration
  std::vector<Slots::Holder> holders;
  std::vector<os::SlotRecord> waiters;  ///< in order
};

/// `limit.capacity` 0: not configured; then the capacity of the last holder, or the number of files.
[[nodiscard]] Listing list(const HostLimit& limit);

/// A ticket in the line or a held slot, in the form that all limits list. `capacity` is that of the limit.
[[nodiscard]] domain::LimitEntry entry_of(const os::SlotRecord& record);
[[nodiscard]] domain::LimitEntry entry_of(const Slots::Holder& holder, std::uint32_t capacity);

}  // namespace stint::limit
