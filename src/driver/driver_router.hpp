/// All drivers of this program behind the one port that the engine takes: an attempt goes to the driver that its spec
/// names. The process drivers of the registry are there from the beginning; a driver that works in this process is
/// added by name. Own thread only; outlives the works that were begun.
#pragma once

#include "domain/driver.hpp"
#include "driver/process_driver.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace stint::driver {

class DriverRouter final : public domain::Driver {
 public:
  DriverRouter(Reactor& reactor, ProcessDriver::Options options);

  /// `driver` outlives the router. A name has one driver.
  void add(std::string_view name, domain::Driver& driver);

  /// Fails with `Errc::invalid` if no driver has the name in the spec of the order.
  Result<std::unique_ptr<domain::Work>> begin(domain::WorkOrder order, domain::WorkContext& context) override;
  [[nodiscard]] std::string choose_conversation(const domain::WorkOrder& order) override;

  /// Of the process drivers.
  [[nodiscard]] domain::Survivors& survivors() noexcept { return processes_.survivors(); }
  [[nodiscard]] Wardens& wardens() noexcept { return processes_.wardens(); }
  /// Back-pressure on all works of the process drivers: true pauses their output, false resumes it.
  void hold(bool held) { processes_.hold(held); }

 private:
  [[nodiscard]] domain::Driver* find(std::string_view name) const;

  ProcessDriver processes_;
  std::map<std::string, std::reference_wrapper<domain::Driver>, std::less<>> drivers_;
};

}  // namespace stint::driver
