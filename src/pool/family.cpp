#include "pool/family.hpp"

#include <algorithm>
#include <deque>

namespace stint::pool {
namespace {

constexpr std::uint32_t kChildrenCounted = 1000;  // of each
constexpr std::size_t kFamilyMax = 5000;

void add(FamilyUse& sum, const store::Run& run, const Worker* here) {
  sum.tokens += run.tokens;
  sum.money_micros += run.money_micros;
  if (here == nullptr || run.state != domain::RunState::running) return;
  // Of an attempt that is not settled yet, in the very look at the store that is being added up.
  const Carried* const carried = here->find(run.id);
  if (carried == nullptr || carried->fence != run.fence) return;
  sum.tokens += std::max<std::int64_t>(0, carried->usage.tokens() - run.tokens);
  sum.money_micros += std::max<std::int64_t>(0, carried->usage.money_micros - run.money_micros);
}

}  // namespace

std::string FamilyUse::used_up(const domain::BudgetSpec& budget) const {
  if (budget.tokens && tokens > *budget.tokens) return "tokens are used up";
  if (budget.money_micros && money_micros > *budget.money_micros) return "money is used up";
  return {};
}

bool FamilyUse::leaves_nothing(const domain::BudgetSpec& budget) const noexcept {
  return (budget.tokens && tokens >= *budget.tokens) || (budget.money_micros && money_micros >= *budget.money_micros);
}

Task<Result<FamilyUse>> used_by_family(store::Store& store, const Worker* here, std::string id) {
  FamilyUse sum;
  STINT_CO_TRY(const std::optional<store::Run> head, co_await store.find(id));
  if (!head) co_return sum;
  add(sum, *head, here);
  std::deque<std::string> parents{head->id};
  for (std::size_t seen = 0; !parents.empty() && seen < kFamilyMax;) {
    store::Filter filter;
    filter.parent = std::move(parents.front());
    filter.most = kChildrenCounted;
    parents.pop_front();
    STINT_CO_TRY(const std::vector<store::Run> children, co_await store.list(std::move(filter)));
    seen += children.size();
    for (const store::Run& child : children) {
      add(sum, child, here);
      parents.push_back(child.id);
    }
  }
  co_return sum;
}

}  // namespace stint::pool
