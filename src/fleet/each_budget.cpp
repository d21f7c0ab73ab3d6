#include "fleet/each_budget.hpp"

#include <algorithm>

namespace stint::fleet {

void EachBudget::see(const engine::RunView& view) {
  // The run has the usage of settled attempts; the owner reports that of the attempt under way.
  Use& use = by_run_[view.run.id];
  const Use now{.tokens = std::max(view.run.tokens, view.memo.usage.tokens()),
                .cost_micros = std::max(view.run.cost_micros, view.memo.usage.cost_micros)};
  sum_.tokens += now.tokens - use.tokens;
  sum_.cost_micros += now.cost_micros - use.cost_micros;
  use = now;
}

std::string EachBudget::used_up() const {
  if (whole_.tokens && sum_.tokens >= *whole_.tokens) return "the token budget of all runs is used up";
  if (whole_.cost_micros && sum_.cost_micros >= *whole_.cost_micros) return "the cost budget of all runs is used up";
  return {};
}

}  // namespace stint::fleet
