/// Which directory a host limit lives in. `agent:<name>` belongs to a checkout, everything else to the user, or to all
/// users of `limits_dir`.
#pragma once

#include "limit/host_limit.hpp"

#include <string>
#include <vector>

namespace stint::limit {

struct Homes {
  std::string limits;   ///< of every limit but an agent's
  std::string agents;   ///< of agents' limits; empty outside of a repository
  bool shared = false;  ///< `limits` was named by limits_dir

  [[nodiscard]] Result<HostLimit> find(const std::string& name, std::uint32_t capacity) const;
  /// Limits that have left files behind, by name.
  [[nodiscard]] std::vector<HostLimit> known() const;
};

}  // namespace stint::limit
