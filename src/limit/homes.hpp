/// Which directory a host limit lives in. `agent:<name>` belongs to a checkout, everything else to the user, or to all
/// users of `limits_dir`.
#pragma once

#include "limit/host_limit.hpp"
#include "project/limit_settings.hpp"

#include <string>
#include <utility>
#include <vector>

namespace stint::limit {

struct Homes : project::LimitDirectories {
  Homes() = default;
  explicit Homes(project::LimitDirectories directories) : LimitDirectories(std::move(directories)) {}

  [[nodiscard]] Result<HostLimit> find(const std::string& name, std::uint32_t capacity) const;
  /// Limits that have left files behind, by name.
  [[nodiscard]] std::vector<HostLimit> known() const;
};

}  // namespace stint::limit
