/// What the runs of one `stint submit --each --one-budget` have used together. Pure.
#pragma once

#include "engine/fleet.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace stint::cli {

class EachBudget {
 public:
  explicit EachBudget(const domain::BudgetSpec& whole) : whole_(whole) {}

  /// The newest word of a run counts.
  void see(const engine::RunView& view);
  /// Of tokens and money, what is used up, for people; empty: there is something left.
  [[nodiscard]] std::string used_up() const;

 private:
  struct Use {
    std::int64_t tokens = 0, money_micros = 0;
  };
  const domain::BudgetSpec whole_;
  std::map<std::string, Use> by_run_;
  Use sum_;
};

}  // namespace stint::cli
