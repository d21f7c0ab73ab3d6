/// A holder of a limit, or a request that waits in its line. The same for limits of this host, whose lock files name
/// processes, and for limits of the cluster, where the store names runs.
#pragma once

#include "stint/retry_after.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace stint::domain {

/// Unknown fields are empty: a slot that another tool locked has neither run nor pid, a run of another host has no pid.
struct LimitEntry {
  std::string run{};                  ///< id
  std::string agent{};                ///< of the run
  std::string label{};                ///< of a process of this host, chosen by its owner
  std::optional<std::int64_t> pid{};  ///< of that process
  std::uint32_t weight = 1;           ///< units
  std::optional<WallTime> since{};
  std::optional<std::uint32_t> place{};  ///< in line, from 1; none: it holds its units

  friend bool operator==(const LimitEntry&, const LimitEntry&) = default;
};

}  // namespace stint::domain
