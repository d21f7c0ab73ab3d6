#include "pool/family.hpp"

namespace stint::pool {

std::string used_up(const store::Use& used, const domain::BudgetSpec& budget) {
  if (budget.tokens && used.tokens > *budget.tokens) return "tokens are used up";
  if (budget.money_micros && used.money_micros > *budget.money_micros) return "money is used up";
  return {};
}

bool leaves_nothing(const store::Use& used, const domain::BudgetSpec& budget) noexcept {
  return (budget.tokens && used.tokens >= *budget.tokens) ||
         (budget.money_micros && used.money_micros >= *budget.money_micros);
}

}  // namespace stint::pool
