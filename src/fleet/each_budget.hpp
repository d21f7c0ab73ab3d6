/// Adds up what the runs of one `stint submit --each --one-budget` have used. Pure.
#pragma once

#include "fleet/fleet.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace stint::fleet {

class EachBudget {
 public:
  explicit EachBudget(const domain::BudgetSpec& whole) : whole_(whole) {}

  /// Replaces what was known of the run's usage.
  void see(const engine::RunView& view);
  /// Which budget is used up, for people; empty: none.
  [[nodiscard]] std::string used_up() const;

 private:
  struct Use {
    std::int64_t tokens = 0, cost_micros = 0;
  };
  const domain::BudgetSpec whole_;
  std::map<std::string, Use> by_run_;
  Use sum_;
};

}  // namespace stint::fleet
