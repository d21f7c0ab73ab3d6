/// Finds and ends processes of attempts on this host whose node and warden were both killed, or whose warden is not
/// done yet. It finds them by the mark in the environment of every process of an attempt, and by the attempt's cgroup,
/// if it had one. It ends them with the ladder and proves by scans that they are gone, because it is not their parent.
/// The wait for their end is bounded: a process can be in a sleep that no signal ends.
///
/// A scan of /proc takes 2 ms with a hundred processes and 35 ms with a thousand, so it runs in a blocking pool. Own
/// thread only; the destructor requires that no call is under way.
#pragma once

#include "domain/driver.hpp"
#include "os/process.hpp"
#include "stint/executor.hpp"
#include "stint/offload.hpp"

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace stint::driver {

class HostSurvivors final : public domain::Survivors {
 public:
  /// `killed_max`: how long after the first SIGKILL end() gives up.
  explicit HostSurvivors(Executor& executor, Duration grace = std::chrono::seconds(5),
                         Duration killed_max = std::chrono::seconds(10))
      : executor_(executor), grace_(grace), killed_max_(killed_max) {}

  Task<Result<std::vector<Leftover>>> find() override;
  Task<Ending> end(std::vector<Leftover> leftovers, std::function<bool()> hurry) override;
  Task<> kill(std::vector<Leftover> leftovers) override;

 private:
  Executor& executor_;
  const Duration grace_, killed_max_;
  BlockingPool scans_{"scans", 1};
};

/// Parses `<run>:<fence>`; none if the text has another form.
[[nodiscard]] std::optional<domain::Survivors::Leftover> parse_leftover(std::string_view part);

}  // namespace stint::driver
