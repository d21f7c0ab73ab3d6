/// Budgets of tokens and cost that an attempt draws on: that of its own run, those of the runs above it, each shared
/// with all runs below, and one that its submission shares with others (`--one-budget`). Each attempt reports what it
/// used to the store, which adds it up; domain/budget_core.hpp decides.
#pragma once

#include "domain/agent.hpp"
#include "pool/carried.hpp"
#include "store/store.hpp"

#include <string>

namespace stint::pool {

/// At most one report of an attempt in this time, and one after the last use.
inline constexpr Duration kFamilyReportEvery = std::chrono::seconds(1);

/// Ends the attempt if its own use exceeds the budget.
void end_if_exceeded(Carried& carried, const domain::BudgetSpec& budget);
/// Before an attempt begins: `left` becomes what is left of the tightest of its budgets, since other runs may have used
/// some of it while the run waited. Returns why nothing is left; empty: there is something, or the store could not
/// tell; watch_family() then finds out.
Task<std::string> tighten_to_shared(store::Store& store, const Carried& carried, domain::BudgetSpec& left);
/// Reports the use of the attempt each time `used` was notified, and ends all attempts of this node that draw on a
/// budget that is exceeded. Until it is stopped.
Task<> watch_family(store::Store& store, const CarriedRuns& all, const Carried& carried, Notification& used);

}  // namespace stint::pool
