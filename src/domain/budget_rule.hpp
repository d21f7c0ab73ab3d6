/// Which budgets can be enforced for which driver. Pure. Checked before a run is accepted: a budget that is counted
/// only after it was overspent enforces nothing.
#pragma once

#include "domain/agent.hpp"

#include <optional>
#include <string>

namespace stint::domain {

/// The facts about a run that decide it.
struct BudgetQuestion {
  const DriverDescriptor& driver;
  BudgetSpec budget;        ///< of the whole run
  bool has_price = false;   ///< the settings have a price for its model or its driver
  bool bounds_day = false;  ///< `budget.cost_per_day` is set
};

/// Why the budget can't be enforced, and what to do about it; none: it can.
[[nodiscard]] std::optional<std::string> why_not_held(const BudgetQuestion& question);

}  // namespace stint::domain
