#include "domain/budget_rule.hpp"

namespace stint::domain {
namespace {

/// "claude or codex": the CLIs for which a token budget can be enforced.
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
    return "a " + std::string(question.budget.tokens ? "token" : "cost") + " budget can't be enforced for " + driver +
           ", which reports its usage only when it ends. Remove that budget (time and attempts are enforced), or use "
           "driver " +
           drivers_that_hold_tokens();
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
