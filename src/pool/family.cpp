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

void end_family(const CarriedRuns& all, const std::string& head, const std::string& what) {
  for (const auto& [key, carried] : all.all()) {
    const bool draws =
        std::ranges::find(carried->budgets, head, &domain::RunInput::BudgetAbove::run) != carried->budgets.end();
    if (!draws || carried->is_stopped()) continue;
    carried->stop(Carried::Stop::expired, carried->id == head ? "the budget's " + what + ", with the runs below it"
                                                              : "the budget's " + what + ", which '" + head +
                                                                    "' shares with the runs below it");
  }
}

}  // namespace

std::string used_up(const store::Use& used, const domain::BudgetSpec& budget) {
  if (budget.tokens && used.tokens > *budget.tokens) return "tokens are used up";
  if (budget.cost_micros && used.cost_micros > *budget.cost_micros) return "cost is used up";
  return {};
}

bool leaves_nothing(const store::Use& used, const domain::BudgetSpec& budget) noexcept {
  return (budget.tokens && used.tokens >= *budget.tokens) ||
         (budget.cost_micros && used.cost_micros >= *budget.cost_micros);
}

void end_if_used_up(Carried& carried, const domain::BudgetSpec& budget) {
  const std::string what =
      used_up({.tokens = carried.usage.tokens(), .cost_micros = carried.usage.cost_micros}, budget);
  if (!what.empty() && !carried.is_stopped()) carried.stop(Carried::Stop::expired, "the budget's " + what);
}

Task<std::string> why_nothing_is_left(store::Store& store, const Carried& carried) {
  std::vector<std::string> heads;
  for (const auto& above : carried.budgets) {
    const bool untouched = above.run == carried.id && carried.fence <= 1;  // nothing of its own can have begun
    if (!untouched) heads.push_back(above.run);
  }
  if (heads.empty()) co_return "";
  const auto sums = co_await store.used(std::move(heads));
  if (!sums) co_return "";
  for (const auto& above : carried.budgets) {
    const auto sum = std::ranges::find(*sums, above.run, &store::FamilyUse::head);
    if (sum != sums->end() && leaves_nothing(sum->used, above.budget)) {
      co_return "nothing is left of the budget of '" + above.run + "', with all that is below it";
    }
  }
  co_return "";
}

Task<> watch_family(store::Store& store, const CarriedRuns& all, const Carried& carried, Notification& used) {
  bool reported = true;  // what was used last
  for (std::uint64_t seen = used.count();; co_await sleep_for(kFamilyReportEvery)) {
    if (reported) co_await used.wait(seen);
    seen = used.count();
    const auto sums = co_await store.report(carried.owner, carried.run, carried.fence, use_of_attempt(carried));
    reported = sums.has_value();
    if (!reported || !*sums) continue;  // repeated, or stale
    for (const auto& above : carried.budgets) {
      const auto sum = std::ranges::find(**sums, above.run, &store::FamilyUse::head);
      if (sum == (*sums)->end()) continue;
      const std::string what = used_up(sum->used, above.budget);
      if (!what.empty()) end_family(all, above.run, what);
    }
  }
}

}  // namespace stint::pool
