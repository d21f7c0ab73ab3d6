#include "fleet/each_budget.hpp"

#include <gtest/gtest.h>

namespace stint::fleet {
namespace {

engine::RunView run(const std::string& id, std::int64_t settled, std::int64_t under_way) {
  engine::RunView view;
  view.run.id = id;
  view.run.tokens = view.run.cost_micros = settled;
  view.memo.usage.out = view.memo.usage.cost_micros = under_way;
  return view;
}

TEST(EachBudget, all_runs_draw_on_it_and_none_counts_twice) {
  EachBudget budget({.tokens = 100});
  EXPECT_EQ(budget.used_up(), "");
  budget.see(run("a", 0, 40));
  budget.see(run("a", 40, 50));
  budget.see(run("b", 49, 0));
  EXPECT_EQ(budget.used_up(), "") << "99";
  budget.see(run("a", 50, 50));
  EXPECT_EQ(budget.used_up(), "") << "the same, settled";
  budget.see(run("b", 50, 0));
  EXPECT_EQ(budget.used_up(), "the token budget of all runs is used up");
}

TEST(EachBudget, cost_has_its_own_bound) {
  EachBudget budget({.cost_micros = 10});
  budget.see(run("a", 9, 0));
  EXPECT_EQ(budget.used_up(), "");
  budget.see(run("b", 0, 1));
  EXPECT_EQ(budget.used_up(), "the cost budget of all runs is used up");
}

}  // namespace
}  // namespace stint::fleet
