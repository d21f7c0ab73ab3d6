#include "domain/budget_rule.hpp"

namespace stint::domain {
namespace {

/// "claude or codex": those that are no command and can be stopped at a budget of tokens.
std::string drivers_that_hold_tokens() {
  std::string out;
  for (const DriverDescriptor& driver : kDrivers) {
    if (driver.holds_tokens && !driver.runs_command) out += (out.empty() ? "" : " or ") + std::string(driver.name);
  }
  return out;
}

}  // namespace

std::optional<std::string> why_not_held(const BudgetQuestion& question) {
  const std::string driver(question.driver.name);
  const bool priced = question.driver.names_cost || question.has_price;
  if (!question.driver.holds_tokens && (question.budget.tokens || question.budget.cost_micros)) {
    return "a budget of " + std::string(question.budget.tokens ? "tokens" : "cost") + " can't be held for " + driver +
           ", which tells what it used only when it has ended. Leave it out (time and attempts hold), or choose the "
           "driver " +
           drivers_that_hold_tokens();
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
