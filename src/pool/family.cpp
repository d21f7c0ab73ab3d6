#include "pool/family.hpp"

#include "domain/budget_core.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace stint::pool {
namespace {

store::Use use_of_attempt(const Carried& carried) {
  return domain::use_of(carried.usage) - (carried.before ? domain::use_of(carried.before->usage) : store::Use());
}

std::string exceeded_text(Resource resource) {
  return "the budget's " + std::string(to_string(resource)) +
         (resource == Resource::tokens || resource == Resource::attempts ? " are used up" : " is used up");
}

void end_family(const CarriedRuns& all, const std::string& head, Resource resource) {
  for (const auto& [key, carried] : all.all()) {
    const bool draws =
        std::ranges::find(carried->budgets, head, &domain::RunInput::BudgetAbove::run) != carried->budgets.end();
    if (!draws || carried->is_stopped()) continue;
    const std::string whose =
        carried->id == head ? ", with the runs below it" : ", which all runs share that draw on '" + head + "'";
    carried->stop(Carried::Stop::expired, exceeded_text(resource) + whose);
  }
}

}  // namespace

void end_if_exceeded(Carried& carried, const domain::BudgetSpec& budget) {
  const auto resource = domain::exceeded(budget, domain::use_of(carried.usage));
  if (resource && !carried.is_stopped()) carried.stop(Carried::Stop::expired, exceeded_text(*resource));
}

Task<std::string> tighten_to_shared(store::Store& store, const Carried& carried, domain::BudgetSpec& left) {
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
    if (sum == sums->end()) continue;
    if (domain::used_up(above.budget, sum->used)) {
      co_return "nothing is left of the budget of '" + above.run + "', which several runs share";
    }
    left = domain::tighter(left, domain::left(above.budget, sum->used));
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
      const auto resource = domain::exceeded(above.budget, sum->used);
      if (resource) end_family(all, above.run, *resource);
    }
  }
}

}  // namespace stint::pool
