#include "pool/family.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace stint::pool {
namespace {

store::Use use_of_attempt(const Carried& carried) {
  const Usage before = carried.before ? carried.before->usage : Usage();
  return {.tokens = carried.usage.tokens() - before.tokens(),
          .cost_micros = carried.usage.cost_micros - before.cost_micros};
}

void end_family(const CarriedRuns& all, const std::string& head, const std::string& budget) {
  for (const auto& [key, carried] : all.all()) {
    const bool draws =
        std::ranges::find(carried->budgets, head, &domain::RunInput::BudgetAbove::run) != carried->budgets.end();
    if (!draws || carried->is_stopped()) continue;
    carried->stop(Carried::Stop::expired,
                  carried->id == head
                      ? "the " + budget + " budget is used up, together with the runs below it"
                      : "the " + budget + " budget that run '" + head + "' shares with the runs below it is used up");
  }
}

}  // namespace

std::string exceeded_budget(const store::Use& used, const domain::BudgetSpec& budget) {
  if (budget.tokens && used.tokens > *budget.tokens) return "token";
  if (budget.cost_micros && used.cost_micros > *budget.cost_micros) return "cost";
  return {};
}

bool is_spent(const store::Use& used, const domain::BudgetSpec& budget) noexcept {
  return (budget.tokens && used.tokens >= *budget.tokens) ||
         (budget.cost_micros && used.cost_micros >= *budget.cost_micros);
}

void end_if_used_up(Carried& carried, const domain::BudgetSpec& budget) {
  const std::string exceeded =
      exceeded_budget({.tokens = carried.usage.tokens(), .cost_micros = carried.usage.cost_micros}, budget);
  if (exceeded.empty() || carried.is_stopped()) return;
  carried.stop(Carried::Stop::expired, "the " + exceeded + " budget is used up");
}

Task<std::string> why_budget_is_spent(store::Store& store, const Carried& carried) {
  std::vector<std::string> heads;
  for (const auto& above : carried.budgets) {
    const bool untouched = above.run == carried.id && carried.fence <= 1;  // its first attempt has used nothing yet
    if (!untouched) heads.push_back(above.run);
  }
  if (heads.empty()) co_return "";
  const auto sums = co_await store.used(std::move(heads));
  if (!sums) co_return "";
  for (const auto& above : carried.budgets) {
    const auto sum = std::ranges::find(*sums, above.run, &store::FamilyUse::head);
    if (sum != sums->end() && is_spent(sum->used, above.budget)) {
      co_return "the budget that run '" + above.run + "' shares with the runs below it is used up";
    }
  }
  co_return "";
}

Task<> watch_family(store::Store& store, const CarriedRuns& all, const Carried& carried, Notification& used) {
  bool reported = true;  // the store has the last usage
  for (std::uint64_t seen = used.count();; co_await sleep_for(kFamilyReportEvery)) {
    if (reported) co_await used.wait(seen);
    seen = used.count();
    const auto sums = co_await store.report(carried.owner, carried.run, carried.fence, use_of_attempt(carried));
    reported = sums.has_value();
    if (!reported || !*sums) continue;  // the report failed and is retried, or the fence is stale
    for (const auto& above : carried.budgets) {
      const auto sum = std::ranges::find(**sums, above.run, &store::FamilyUse::head);
      if (sum == (*sums)->end()) continue;
      const std::string exceeded = exceeded_budget(sum->used, above.budget);
      if (!exceeded.empty()) end_family(all, above.run, exceeded);
    }
  }
}

}  // namespace stint::pool
