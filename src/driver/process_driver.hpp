/// The driver whose attempts are processes: starts an agent CLI or a command under a warden, in the dialect that the
/// attempt's spec names, and publishes its output with secrets masked. Own thread only; outlives the works that it
/// began.
#pragma once

#include "domain/driver.hpp"
#include "driver/process_attempt.hpp"
#include "driver/secret_mask.hpp"
#include "driver/survivors.hpp"

#include <functional>
#include <memory>
#include <set>
#include <string>

namespace stint::driver {

class ProcessDriver final : public domain::Driver {
 public:
  struct Options {
    Duration grace = std::chrono::seconds(5);           ///< between the first signal and SIGKILL
    SecretMask mask;                                    ///< of secrets that no output may show
    std::function<void(const std::string&)> on_output;  ///< called with the masked text of all works, as it arrives
  };
  ProcessDriver(Reactor& reactor, Options options);

  Result<std::unique_ptr<domain::Work>> begin(domain::WorkOrder order, domain::WorkContext& context) override;
  [[nodiscard]] std::string choose_conversation(const domain::WorkOrder& order) override;
  [[nodiscard]] domain::Survivors& survivors() noexcept { return survivors_; }
  /// Of all processes of this one's attempts, whatever their driver.
  [[nodiscard]] Wardens& wardens() noexcept { return wardens_; }
  /// Back-pressure on all works: true pauses their output, false resumes it.
  void hold(bool held);

 private:
  Options options_;
  HostSurvivors survivors_;
  Wardens wardens_;
  std::set<domain::Work*> works_;
  bool held_ = false;
};

}  // namespace stint::driver
