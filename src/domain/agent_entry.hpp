/// An agent as the store knows it: the limits that the store counts for the agent's runs, and the bounds of its queue.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stint::domain {

struct LimitUse {
  std::string limit;
  std::uint32_t weight = 1;

  friend bool operator==(const LimitUse&, const LimitUse&) = default;
};

/// A run keeps the limits with which it was claimed.
struct AgentEntry {
  std::string name;
  std::vector<LimitUse> limits;  ///< counted and paused by the store, in addition to those of the host
  std::uint32_t queued_max = 200;
  std::uint32_t attempts_max = 3;
  std::uint32_t lost_max = 3;

  friend bool operator==(const AgentEntry&, const AgentEntry&) = default;
};

}  // namespace stint::domain
