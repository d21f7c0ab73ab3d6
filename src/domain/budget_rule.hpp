/// Which budgets can be held for which agent CLI. Pure: one rule, asked before a run is accepted, since a budget that
/// is only counted when it is overspent is none.
#pragma once

#include "domain/agent.hpp"

#include <optional>
#include <string>

namespace stint::domain {

/// What is asked of a run's driver.
struct BudgetQuestion {
  const DriverDescriptor& driver;
  BudgetSpec budget;        ///< the run's whole one
  bool has_price = false;   ///< the settings have one, for its model or its driver
  bool bounds_day = false;  ///< `budget.cost_per_day` is set
};

/// Why a run must not begin with that budget, and what to do about it; nothing: it can be held.
[[nodiscard]] std::optional<std::string> why_not_held(const BudgetQuestion& question);

}  // namespace stint::domain
