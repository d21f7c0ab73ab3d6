/// What attempts left alive on this host when their Stint and its warden were both killed, or the warden is not done
/// yet: found by the mark that every process of an attempt carries in its environment, and by the attempt's cgroup, if
/// it had one. Ended by the ladder, and proven gone by scans, for nobody here is their parent. Own thread only.
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
  explicit HostSurvivors(Executor& executor, Duration grace = std::chrono::seconds(5))
      : executor_(executor), grace_(grace) {}

  [[nodiscard]] std::vector<Attempt> alive() const override;
  Task<std::uint32_t> end(std::vector<Attempt> attempts) override;
  /// The same; when `hurry` comes to be true, without more grace.
  Task<std::uint32_t> end(std::vector<Attempt> attempts, std::function<bool()> hurry);

 private:
  Executor& executor_;
  const Duration grace_;
};

/// From `<run>:<fence>`; none if it is not that.
[[nodiscard]] std::optional<domain::Survivors::Attempt> parse_attempt(std::string_view part);

}  // namespace stint::driver
