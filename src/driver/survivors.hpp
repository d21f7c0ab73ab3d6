/// What leftovers left alive on this host when their Stint and its warden were both killed, or the warden is not done
/// yet: found by the mark that every process of an attempt carries in its environment, and by the attempt's cgroup, if
/// it had one. Ended by the ladder, and proven gone by scans, since this process is not their parent. The wait for
/// their end is bounded: a process can be in a sleep that no signal ends. Own thread only.
#pragma once

#include "domain/driver.hpp"
#include "os/process.hpp"
#include "stint/executor.hpp"

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace stint::driver {

class HostSurvivors final : public domain::Survivors {
 public:
  /// `killed_max`: so long after the first SIGKILL it gives up.
  explicit HostSurvivors(Executor& executor, Duration grace = std::chrono::seconds(5),
                         Duration killed_max = std::chrono::seconds(10))
      : executor_(executor), grace_(grace), killed_max_(killed_max) {}

  [[nodiscard]] std::vector<Leftover> found() const override;
  Task<Ending> end(std::vector<Leftover> leftovers, std::function<bool()> hurry) override;
  void kill(const std::vector<Leftover>& leftovers) override;

 private:
  Executor& executor_;
  const Duration grace_, killed_max_;
};

/// From `<run>:<fence>`; none if it is not that.
[[nodiscard]] std::optional<domain::Survivors::Leftover> parse_leftover(std::string_view part);

}  // namespace stint::driver
