#include "cli/budget_options.hpp"

#include "agent/quantity.hpp"
#include "cli/option_value.hpp"

namespace stint::cli {

void BudgetOptions::declare(Command& command) {
  command.option("--time", time, "Limit the time from the first start, waits and retries included").value("DURATION");
  command.option("--attempts", attempts, "Limit the number of attempts").whole(1, 100);
  command.option("--tokens", tokens, "Limit the tokens: 400k").value("COUNT");
  command.option("--cost", cost, "Limit the cost: 2.50").value("AMOUNT");
}

Result<domain::BudgetSpec> BudgetOptions::read() const {
  domain::BudgetSpec budget;
  if (!time.empty()) {
    STINT_TRY(budget.time, of_option("--time", agent::parse_duration(time)));
  }
  if (!tokens.empty()) {
    STINT_TRY(budget.tokens, of_option("--tokens", agent::parse_count(tokens)));
  }
  if (!cost.empty()) {
    STINT_TRY(budget.cost_micros, of_option("--cost", agent::parse_cost(cost)));
  }
  budget.attempts = attempts;
  return budget;
}

}  // namespace stint::cli
