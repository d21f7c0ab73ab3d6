/// Budgets of tokens and cost that an attempt draws on: that of its own run, and those of the runs above it, each
/// shared with all runs below. Each attempt reports what it used to the store, which adds it up.
#pragma once

#include "domain/agent.hpp"
#include "pool/carried.hpp"
#include "store/store.hpp"

#include <string>

namespace stint::pool {

/// At most one report of an attempt in this time, and one after the last use.
inline constexpr Duration kFamilyReportEvery = std::chrono::seconds(1);

/// What of the budget is used up, for people; empty: it is not exceeded.
[[nodiscard]] std::string used_up(const store::Use& used, const domain::BudgetSpec& budget);
/// What is begun now could use nothing any more.
[[nodiscard]] bool leaves_nothing(const store::Use& used, const domain::BudgetSpec& budget) noexcept;

/// Ends the attempt if its own use exceeds the budget.
void end_if_used_up(Carried& carried, const domain::BudgetSpec& budget);
/// Why nothing is left for an attempt that has not begun: other runs may have used it up while it waited. Empty: there
/// is something, or the store could not tell; watch_family() then finds out.
Task<std::string> why_nothing_is_left(store::Store& store, const Carried& carried);
/// Reports the use of the attempt each time `used` was notified, and ends all attempts of this node that draw on a
/// budget that is used up. Until it is stopped.
Task<> watch_family(store::Store& store, const CarriedRuns& all, const Carried& carried, Notification& used);

}  // namespace stint::pool
