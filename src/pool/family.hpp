/// The token and cost budgets that an attempt draws on: that of its own run, those of the runs above it, each shared
/// with all runs below, and one that its submission shares with others (`--one-budget`). Each attempt reports its usage
/// to the store, which adds it up; domain/budget_core.hpp decides.
#pragma once

#include "domain/agent.hpp"
#include "pool/carried.hpp"
#include "store/store.hpp"

#include <string>

namespace stint::pool {

/// An attempt reports at most once in this time, and once after its last use.
inline constexpr Duration kFamilyReportEvery = std::chrono::seconds(1);

/// Stops the attempt if its own usage exceeds the budget.
void end_if_exceeded(Carried& carried, const domain::BudgetSpec& budget);
/// Before an attempt begins: sets `left` to what is left of the tightest of its budgets, since other runs may have used
/// some of it while the run waited. Returns why nothing is left; empty: something is left, or the store did not answer;
/// then watch_family() checks.
Task<std::string> tighten_to_shared(store::Store& store, const Carried& carried, domain::BudgetSpec& left);
/// Reports the usage of the attempt when `used` is notified, and stops all attempts of this node that draw on an
/// exceeded budget. Runs until it is cancelled.
Task<> watch_family(store::Store& store, const CarriedRuns& all, const Carried& carried, Notification& used);

}  // namespace stint::pool
