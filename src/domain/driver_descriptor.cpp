#include "domain/driver_descriptor.hpp"

#include <algorithm>

namespace stint::domain {
namespace {

constexpr const DriverDescriptor* kCommandDriver = std::ranges::find_if(kDrivers, &DriverDescriptor::runs_command);
static_assert(kCommandDriver != kDrivers.end());

}  // namespace

const DriverDescriptor& command_driver() noexcept { return *kCommandDriver; }

std::string driver_choices() {
  std::string out;
  for (std::size_t i = 0; i < kDrivers.size(); ++i) {
    out += i == 0 ? "" : i + 1 == kDrivers.size() ? " or " : ", ";
    out += kDrivers[i].name;
  }
  return out;
}

bool is_planned_driver(std::string_view name) noexcept {
  return std::ranges::find(kPlannedDrivers, name) != kPlannedDrivers.end();
}

std::string why_no_driver(std::string_view name) {
  const std::string shown = "'" + std::string(name) + "'";
  return (is_planned_driver(name) ? "the driver " + shown + " is not available in this version"
                                  : "there is no driver " + shown) +
         "; use " + driver_choices();
}

}  // namespace stint::domain
