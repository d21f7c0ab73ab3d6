/// One line of what a limit lists: a holder, or a place in its line. The same for limits of this host, whose files name
/// processes, and for limits of the cluster, whose store names runs.
#pragma once

#include "stint/retry_after.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace stint::domain {

/// What is not known is empty: a slot that another tool locked has neither run nor pid, a run of another host no pid.
struct LimitEntry {
  std::string run{};                  ///< id
  std::string agent{};                ///< of the run
  std::string label{};                ///< of a process of this host, as its owner named it
  std::optional<std::int64_t> pid{};  ///< of that process
  std::uint32_t weight = 1;           ///< units
  std::optional<WallTime> since{};
  std::optional<std::uint32_t> place{};  ///< in line, from 1; none: it holds its units

  // Of a process of this host that holds a unit.
  std::string user{};                        ///< its user, if Stint may not look at that user's processes
  bool other_container = false;              ///< it can't be seen from here
  bool swept = false;                        ///< it was killed, and what it left behind is being ended
  bool unjudged = false;                     ///< it was killed, and what it left behind belongs to another user
  std::optional<std::uint32_t> counts_to{};  ///< the capacity that it goes by, if that is another than the limit's

  friend bool operator==(const LimitEntry&, const LimitEntry&) = default;
};

}  // namespace stint::domain
