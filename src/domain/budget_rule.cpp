#include "domain/budget_rule.hpp"

namespace stint::domain {
namespace {

/// It can be stopped while it works; others tell what they used when they have ended.
bool holds_tokens(std::string_view driver) { return driver != "gemini"; }
/// It says what it cost; for others that follows from the tokens and a price.
bool names_cost(std::string_view driver) { return driver != "codex" && driver != "gemini"; }

}  // namespace

std::optional<std::string> why_not_held(const BudgetQuestion& question) {
  const std::string driver(question.driver);
  const bool priced = names_cost(question.driver) || question.has_price;
  if (!holds_tokens(question.driver) && (question.budget.tokens || question.budget.cost_micros)) {
    return "a budget of " + std::string(question.budget.tokens ? "tokens" : "cost") + " can't be held for " + driver +
           ", which tells what it used only when it has ended. Leave it out (time and attempts hold), or choose the "
           "driver claude or codex";
  }
  if (question.budget.cost_micros && !priced) {
    return "a budget of cost can't be held for " + driver +
           ", which tells tokens only. Set models.NAME.price.input and .output for its model, or for models." + driver;
  }
  if (question.bounds_day && !priced) {
    return "budget.cost_per_day can't count " + driver +
           ", which tells tokens only. Set models.NAME.price.input and .output for its model, or for models." + driver;
  }
  return std::nullopt;
}

}  // namespace stint::domain
