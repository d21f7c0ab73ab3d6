/// Limits of this process for single calls within attempts: model calls and tools in parallel, connections. Each is a
/// FIFO semaphore. A permit is held for one call and released between calls, unlike the permits that a run holds for
/// its whole attempt. One executor; outlives the permits.
#pragma once

#include "domain/wait_reason.hpp"
#include "stint/semaphore.hpp"
#include "stint/task.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::pool {

class CallLimits {
 public:
  struct State {
    std::uint32_t capacity = 0;
    std::int64_t held = 0;    ///< units
    std::size_t waiting = 0;  ///< requests in line
  };

  /// Adds a limit, or resizes it. Permits that are held stay valid.
  Result<> set(const std::string& name, std::uint32_t capacity);
  /// Fails with Errc::invalid if there is no such limit, or `weight` is above its capacity.
  Task<Result<Permit>> acquire(std::string name, std::uint32_t weight);
  [[nodiscard]] std::optional<State> find(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::map<std::string, Semaphore, std::less<>> limits_;
};

/// A call of an attempt that waits for its permit.
struct CallWait {
  const CallLimits& limits;
  const std::string& limit;
  std::uint32_t weight = 1;

  /// With the current state of the limit.
  [[nodiscard]] domain::WaitReason reason() const;
};

}  // namespace stint::pool
