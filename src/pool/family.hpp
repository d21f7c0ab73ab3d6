/// What a budget of tokens and money says of what a run, and all that draw on it, have used.
#pragma once

#include "domain/agent.hpp"
#include "store/store.hpp"

#include <string>

namespace stint::pool {

/// What of the budget is used up, for people; empty: it is not exceeded.
[[nodiscard]] std::string used_up(const store::Use& used, const domain::BudgetSpec& budget);
/// What is begun now could use nothing any more.
[[nodiscard]] bool leaves_nothing(const store::Use& used, const domain::BudgetSpec& budget) noexcept;

}  // namespace stint::pool
