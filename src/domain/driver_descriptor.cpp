#include "domain/driver_descriptor.hpp"

#include <algorithm>

namespace stint::domain {
namespace {

constexpr const DriverDescriptor* kCommandDriver = std::ranges::find_if(kDrivers, &DriverDescriptor::runs_command);
static_assert(kCommandDriver != kDrivers.end());
constexpr const DriverDescriptor* kInProcessDriver =
    std::ranges::find_if(kDrivers, &DriverDescriptor::calls_in_process);
static_assert(kInProcessDriver != kDrivers.end());

}  // namespace

const DriverDescriptor& command_driver() noexcept { return *kCommandDriver; }
const DriverDescriptor& in_process_driver() noexcept { return *kInProcessDriver; }

std::string driver_choices() {
  std::string out;
  for (std::size_t i = 0; i < kDrivers.size(); ++i) {
    out += i == 0 ? "" : i + 1 == kDrivers.size() ? " or " : ", ";
    out += kDrivers[i].name;
  }
  return out;
}

std::string why_no_driver(std::string_view name) {
  return "there is no driver '" + std::string(name) + "'; use " + driver_choices();
}

}  // namespace stint::domain
