/// Maps a host limit to its directory. `agent:<name>` belongs to a checkout, every other limit to the user, or to all
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
  /// Limits that have files, by name.
  [[nodiscard]] std::vector<HostLimit> known() const;
};

}  // namespace stint::limit
