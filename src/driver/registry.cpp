#include "driver/registry.hpp"

#include "driver/dialect_support.hpp"

#include <algorithm>
#include <array>

namespace stint::driver {
namespace {

constexpr std::array kEntries{
    DriverEntry{"claude", make_claude, check_claude, choose_claude_conversation},
    DriverEntry{"codex", make_codex, check_codex},
    DriverEntry{"gemini", make_gemini, check_gemini},
    DriverEntry{"command", make_command},
    DriverEntry{"llm"},
};
static_assert(std::ranges::equal(kEntries, domain::kDriverNames, {}, &DriverEntry::name),
              "each driver has a descriptor and an entry here, in the same order");

}  // namespace

std::span<const DriverEntry> driver_entries() noexcept { return kEntries; }

const DriverEntry* find_entry(std::string_view name) noexcept {
  const auto found = std::ranges::find(kEntries, name, &DriverEntry::name);
  return found == kEntries.end() ? nullptr : found;
}

Result<std::unique_ptr<Dialect>> make_dialect(std::string_view driver) {
  constexpr std::size_t kNameShownMax = 60;
  const DriverEntry* const entry = find_entry(driver);
  if (entry != nullptr && entry->make_dialect != nullptr) return entry->make_dialect();
  return fail(Errc::invalid, domain::why_no_driver(shortened(driver, kNameShownMax)));
}

Result<> check_rules(const domain::DriverDescriptor& driver, const ToolRules& rules) {
  const DriverEntry* const entry = find_entry(driver.name);
  if (entry == nullptr || entry->check_rules == nullptr) return check_without_tools(rules, driver.name);
  return entry->check_rules(rules);
}

}  // namespace stint::driver
