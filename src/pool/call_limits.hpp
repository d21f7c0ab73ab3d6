/// Limits of this process for single calls within attempts: model calls and tools in parallel, connections. Each is a
/// FIFO semaphore. A permit is held for one call and released between calls, unlike the permits that a run holds for
/// its whole attempt. One executor; outlives the permits.
#pragma once

#include "stint/semaphore.hpp"
#include "stint/task.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace stint::pool {

class CallLimits {
 public:
  /// Adds a limit, or resizes it. Permits that are held stay valid.
  Result<> set(const std::string& name, std::uint32_t capacity);
  /// Fails with Errc::invalid if there is no such limit, or `weight` is above its capacity.
  Task<Result<Permit>> acquire(std::string name, std::uint32_t weight);

 private:
  std::map<std::string, Semaphore, std::less<>> limits_;
};

}  // namespace stint::pool
