#include "domain/budget_rule.hpp"

namespace stint::domain {
namespace {

/// It reports usage while it works, so it can be stopped in time. The others report usage only when they end.
bool reports_while_running(std::string_view driver) { return driver != "gemini"; }
/// It reports its cost. For the others the cost is computed from tokens and a price.
bool reports_cost(std::string_view driver) { return driver != "codex" && driver != "gemini"; }

}  // namespace

std::optional<std::string> why_not_held(const BudgetQuestion& question) {
  const std::string driver(question.driver);
  const bool priced = reports_cost(question.driver) || question.has_price;
  if (!reports_while_running(question.driver) && (question.budget.tokens || question.budget.cost_micros)) {
    return "a " + std::string(question.budget.tokens ? "token" : "cost") + " budget can't be enforced for " + driver +
           ", which reports its usage only when it ends. Remove that budget (time and attempts are enforced), or use "
           "driver claude or codex";
  }
  if (question.budget.cost_micros && !priced) {
    return "a cost budget can't be enforced for " + driver +
           ", which reports only tokens. Set models.NAME.price.input and .output for its model, or for models." +
           driver;
  }
  if (question.bounds_day && !priced) {
    return "budget.cost_per_day can't be enforced for " + driver +
           ", which reports only tokens. Set models.NAME.price.input and .output for its model, or for models." +
           driver;
  }
  return std::nullopt;
}

}  // namespace stint::domain
