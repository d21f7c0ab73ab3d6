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
  std::string title{};                ///< of a running run
  std::string label{};                ///< of a process of this host, chosen by its owner
  std::optional<std::int64_t> pid{};  ///< of that process
  std::uint32_t weight = 1;           ///< units
  std::optional<WallTime> since{};
  std::optional<std::uint32_t> place{};  ///< in line, from 1; none: it holds its units

  // Of a process of this host that holds a unit.
  std::string user{};                        ///< its user, if Stint may not inspect the processes of that user
  bool other_container = false;              ///< not visible from here
  bool swept = false;                        ///< it was killed; its leftover processes are being ended
  bool unjudged = false;                     ///< it was killed; its leftover processes belong to another user
  std::optional<std::uint32_t> counts_to{};  ///< the capacity that it uses, if it differs from that of the limit

  friend bool operator==(const LimitEntry&, const LimitEntry&) = default;
};

}  // namespace stint::domain
