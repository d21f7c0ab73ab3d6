/// A run and all that is below it draw on one budget.
#pragma once

#include "domain/agent.hpp"
#include "pool/worker.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <string>

namespace stint::pool {

struct FamilyUse {
  std::int64_t tokens = 0, money_micros = 0;

  /// What of the budget is used up, for people; empty: there is something left of it.
  [[nodiscard]] std::string used_up(const domain::BudgetSpec& budget) const;
  /// What is begun now could use nothing any more.
  [[nodiscard]] bool leaves_nothing(const domain::BudgetSpec& budget) const noexcept;
};

/// Of the run and all below it, the newest few thousand of them: what is settled, by the store, and what `here` knows
/// of those that it carries; it may be null. What others carry counts when they have settled it.
Task<Result<FamilyUse>> used_by_family(store::Store& store, const Worker* here, std::string id);

}  // namespace stint::pool
