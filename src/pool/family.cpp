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
  const std::string name = resource == Resource::tokens ? "token" : std::string(to_string(resource));
  return "the " + name + " budget is used up";
}

void end_family(const CarriedRuns& all, const std::string& head, Resource resource) {
  for (const auto& [key, carried] : all.all()) {
    const bool draws =
        std::ranges::find(carried->budgets, head, &domain::RunInput::BudgetAbove::run) != carried->budgets.end();
    if (!draws || carried->is_stopped()) continue;
    const std::string whose = carried->id == head ? ", together with the runs below it"
                                                  : ", which all runs that draw on '" + head + "' share";
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
    const bool untouched =
        above.run == carried.id && carried.fence.value <= 1;  // its first attempt has used nothing yet
    if (!untouched) heads.push_back(above.run);
  }
  if (heads.empty()) co_return "";
  const auto sums = co_await store.used(std::move(heads));
  if (!sums) co_return "";
  for (const auto& above : carried.budgets) {
    const auto sum = std::ranges::find(*sums, above.run, &store::FamilyUse::head);
    if (sum == sums->end()) continue;
    if (domain::used_up(above.budget, sum->used)) {
      co_return "the budget of '" + above.run + "', which several runs share, is used up";
    }
    left = domain::tighter(left, domain::left(above.budget, sum->used));
  }
  co_return "";
}

Task<> watch_family(store::Store& store, const CarriedRuns& all, const Carried& carried, Notification& used) {
  bool reported = true;  // the store has the last usage
  for (std::uint64_t seen = used.count();; co_await sleep_for(kFamilyReportEvery)) {
    if (reported) co_await used.wait(seen);
    seen = used.count();
    const auto sums = co_await store.report(carried.owner, carried.attempt_key(), use_of_attempt(carried));
    reported = sums.has_value();
    if (!reported || !*sums) continue;  // the report failed and is retried, or the fence is stale
    for (const auto& above : carried.budgets) {
      const auto sum = std::ranges::find(**sums, above.run, &store::FamilyUse::head);
      if (sum == (*sums)->end()) continue;
      const auto resource = domain::exceeded(above.budget, sum->used);
      if (resource) end_family(all, above.run, *resource);
    }
  }
}

}  // namespace stint::pool
