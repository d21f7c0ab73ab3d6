/// The token and cost budgets that an attempt draws on: that of its own run, and those of the runs above it, each
/// shared with all runs below. Each attempt reports its usage to the store, which adds it up.
#pragma once

#include "domain/agent.hpp"
#include "pool/carried.hpp"
#include "store/store.hpp"

#include <string>

namespace stint::pool {

/// An attempt reports at most once in this time, and once after its last use.
inline constexpr Duration kFamilyReportEvery = std::chrono::seconds(1);

/// Which budget is exceeded: "token" or "cost"; empty: none.
[[nodiscard]] std::string exceeded_budget(const store::Use& used, const domain::BudgetSpec& budget);
/// Nothing is left of the budget: an attempt must not begin on it.
[[nodiscard]] bool is_spent(const store::Use& used, const domain::BudgetSpec& budget) noexcept;

/// Stops the attempt if its own usage exceeds the budget.
void end_if_used_up(Carried& carried, const domain::BudgetSpec& budget);
/// Why an attempt must not begin: other runs may have used up a shared budget while it waited. Empty: something is
/// left, or the store did not answer; then watch_family() checks.
Task<std::string> why_budget_is_spent(store::Store& store, const Carried& carried);
/// Reports the usage of the attempt when `used` is notified, and stops all attempts of this node that draw on an
/// exceeded budget. Runs until it is cancelled.
Task<> watch_family(store::Store& store, const CarriedRuns& all, const Carried& carried, Notification& used);

}  // namespace stint::pool
