#include "driver/driver_router.hpp"

#include "driver/dialect_support.hpp"
#include "driver/registry.hpp"
#include "stint/assert.hpp"

#include <utility>

namespace stint::driver {

DriverRouter::DriverRouter(Reactor& reactor, ProcessDriver::Options options) : processes_(reactor, std::move(options)) {
  for (const DriverEntry& entry : driver_entries()) {
    if (entry.make_dialect != nullptr) add(entry.name, processes_);
  }
}

void DriverRouter::add(std::string_view name, domain::Driver& driver) {
  const bool added = drivers_.emplace(name, driver).second;
  STINT_ASSERT(added);
}

domain::Driver* DriverRouter::find(std::string_view name) const {
  const auto found = drivers_.find(name);
  return found == drivers_.end() ? nullptr : &found->second.get();
}

Result<std::unique_ptr<domain::Work>> DriverRouter::begin(domain::WorkOrder order, domain::WorkContext& context) {
  constexpr std::size_t kNameShownMax = 60;
  domain::Driver* const driver = find(order.spec.driver);
  if (driver == nullptr) return fail(Errc::invalid, domain::why_no_driver(shortened(order.spec.driver, kNameShownMax)));
  return driver->begin(std::move(order), context);
}

std::string DriverRouter::choose_conversation(const domain::WorkOrder& order) {
  domain::Driver* const driver = find(order.spec.driver);
  return driver == nullptr ? std::string() : driver->choose_conversation(order);
}

}  // namespace stint::driver
