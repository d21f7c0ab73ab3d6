#include "cli/each_budget.hpp"

#include <algorithm>

namespace stint::cli {

void EachBudget::see(const engine::RunView& view) {
  // What is settled is in the run; what an attempt under way has used is known to whoever carries it.
  Use& use = by_run_[view.run.id];
  const Use now{.tokens = std::max(view.run.tokens, view.memo.usage.tokens()),
                .money_micros = std::max(view.run.money_micros, view.memo.usage.money_micros)};
  sum_.tokens += now.tokens - use.tokens;
  sum_.money_micros += now.money_micros - use.money_micros;
  use = now;
}

std::string EachBudget::used_up() const {
  if (whole_.tokens && sum_.tokens >= *whole_.tokens) return "the tokens of all are used up";
  if (whole_.money_micros && sum_.money_micros >= *whole_.money_micros) return "the money of all is used up";
  return {};
}

}  // namespace stint::cli
