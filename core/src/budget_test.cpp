#include "stint/budget.hpp"

#include "threads_test_support.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace stint {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kBudgetStart{1000h};

TEST(Budget, is_unlimited_by_default) {
  Budget budget;
  EXPECT_EQ(budget.remaining(kBudgetStart), Allowance());
  EXPECT_TRUE(budget.start(kBudgetStart).is_never());
  EXPECT_TRUE(budget.spend({.attempts = 1000, .tokens = Budget::kAmountMax, .cost_micros = 1}));
  EXPECT_EQ(budget.remaining(kBudgetStart), Allowance());
  EXPECT_EQ(budget.spent(), (Spend{.attempts = 1000, .tokens = Budget::kAmountMax, .cost_micros = 1}));
}

TEST(Budget, exhaustion_names_the_resource_and_the_missing_amount) {
  Budget budget(Allowance{.attempts = 3, .tokens = 500, .cost_micros = 1'000});
  const auto tokens = budget.reserve({.attempts = 1, .tokens = 620});
  ASSERT_FALSE(tokens);
  EXPECT_EQ(tokens.error(), Errc::exhausted);
  EXPECT_EQ(tokens.error().retry(), Retry::never);
  EXPECT_EQ(tokens.error().what(), "the budget is exhausted: 620 tokens wanted, 500 left, 120 missing");
  EXPECT_EQ(budget.spend({.attempts = 4}).error().what(),
            "the budget is exhausted: 4 attempts wanted, 3 left, 1 missing");
  EXPECT_EQ(budget.spend({.cost_micros = 1'001}).error().what(),
            "the budget is exhausted: 1001 micro-units of cost wanted, 1000 left, 1 missing");
}

TEST(Budget, takes_all_or_nothing) {
  Budget budget(Allowance{.attempts = 3, .tokens = 500});
  EXPECT_FALSE(budget.reserve({.attempts = 1, .tokens = 501}));
  EXPECT_EQ(budget.remaining(kBudgetStart).attempts, 3);
  EXPECT_EQ(budget.remaining(kBudgetStart).tokens, 500);
}

TEST(Budget, refuses_amounts_out_of_range) {
  Budget budget;
  EXPECT_EQ(budget.reserve({.tokens = -1}).error(), Errc::invalid);
  EXPECT_EQ(budget.reserve({.cost_micros = Budget::kAmountMax + 1}).error(), Errc::invalid);
}

TEST(Budget, negative_bounds_count_as_zero) {
  Budget budget(Allowance{.time = -1s, .tokens = -5});
  EXPECT_EQ(budget.remaining(kBudgetStart).tokens, 0);
  EXPECT_TRUE(budget.start(kBudgetStart).passed(kBudgetStart));
}

TEST(Budget, a_reservation_holds_until_it_is_settled) {
  Budget budget(Allowance{.tokens = 100});
  auto reservation = budget.reserve({.tokens = 80});
  ASSERT_TRUE(reservation);
  EXPECT_EQ(budget.remaining(kBudgetStart).tokens, 20);
  EXPECT_EQ(budget.spent().tokens, 0);
  reservation->settle({.tokens = 30});
  EXPECT_EQ(budget.remaining(kBudgetStart).tokens, 70);
  EXPECT_EQ(budget.spent().tokens, 30);
  reservation->settle({.tokens = 30});
  EXPECT_EQ(budget.remaining(kBudgetStart).tokens, 70) << "settled twice";
  EXPECT_EQ(reservation->amount(), Spend());
}

TEST(Budget, a_dropped_reservation_returns_all_of_it) {
  Budget budget(Allowance{.attempts = 1, .cost_micros = 10});
  {
    const auto reservation = budget.reserve({.attempts = 1, .cost_micros = 10});
    EXPECT_EQ(budget.remaining(kBudgetStart).attempts, 0);
  }
  EXPECT_EQ(budget.remaining(kBudgetStart).attempts, 1);
  EXPECT_EQ(budget.remaining(kBudgetStart).cost_micros, 10);
}

TEST(Budget, an_overrun_is_charged_and_leaves_nothing_remaining) {
  Budget budget(Allowance{.cost_micros = 100});
  auto first = budget.reserve({.cost_micros = 50});
  auto second = budget.reserve({.cost_micros = 50});
  first->settle({.cost_micros = 120});
  EXPECT_EQ(budget.remaining(kBudgetStart).cost_micros, 0);
  EXPECT_EQ(budget.spent().cost_micros, 120);
  second->settle({});
  EXPECT_EQ(budget.remaining(kBudgetStart).cost_micros, 0) << "100 less 120 is not 50";
  EXPECT_FALSE(budget.reserve({.cost_micros = 1}));
}

TEST(Budget, a_moved_reservation_settles_once) {
  Budget budget(Allowance{.tokens = 10});
  auto first = *budget.reserve({.tokens = 4});
  Reservation second = std::move(first);
  first.settle({.tokens = 4});  // NOLINT: the source is empty
  EXPECT_EQ(budget.spent().tokens, 0);
  second = *budget.reserve({.tokens = 6});  // returns the 4 that it held
  EXPECT_EQ(budget.remaining(kBudgetStart).tokens, 4);
}

TEST(Budget, time_starts_at_the_first_start) {
  Budget budget(Allowance{.time = 10s});
  EXPECT_EQ(budget.remaining(kBudgetStart).time, 10s);
  EXPECT_EQ(budget.remaining(kBudgetStart + 1h).time, 10s) << "waiting in the queue is free";
  EXPECT_EQ(budget.start(kBudgetStart + 1h), Deadline(kBudgetStart + 1h + 10s));
  EXPECT_EQ(budget.start(kBudgetStart + 1h + 4s), Deadline(kBudgetStart + 1h + 10s)) << "only the first start counts";
  EXPECT_EQ(budget.remaining(kBudgetStart + 1h + 4s).time, 6s);
  EXPECT_EQ(budget.remaining(kBudgetStart + 2h).time, 0s);
}

TEST(Budget, paused_time_does_not_count) {
  Budget budget(Allowance{.time = 10s});
  budget.start(kBudgetStart);
  budget.pause(kBudgetStart + 3s);
  budget.pause(kBudgetStart + 4s);  // changes nothing
  EXPECT_EQ(budget.remaining(kBudgetStart + 1h).time, 7s);
  budget.resume(kBudgetStart + 1h);
  budget.resume(kBudgetStart + 2h);  // changes nothing
  EXPECT_EQ(budget.deadline(kBudgetStart + 1h), Deadline(kBudgetStart + 1h + 7s));
  EXPECT_EQ(budget.remaining(kBudgetStart + 1h + 2s).time, 5s);
}

TEST(Budget, a_paused_parent_stops_the_clocks_beneath_and_not_the_other_way_round) {
  Budget parent(Allowance{.time = 60s});
  auto child = *parent.split({.time = 10s});
  child.start(kBudgetStart);
  EXPECT_EQ(parent.remaining(kBudgetStart + 1s).time, 59s) << "work beneath has started it too";
  parent.pause(kBudgetStart + 2s);
  EXPECT_EQ(child.remaining(kBudgetStart + 100s).time, 8s);
  parent.resume(kBudgetStart + 100s);
  child.pause(kBudgetStart + 101s);
  EXPECT_EQ(child.remaining(kBudgetStart + 110s).time, 7s);
  EXPECT_EQ(parent.remaining(kBudgetStart + 110s).time, 48s);
  EXPECT_EQ(child.remaining(kBudgetStart + 155s).time, 3s) << "never more than the parent's";
}

// Behaviour 114.
TEST(Budget, a_child_never_has_more_time_than_its_parent_and_the_parent_keeps_its_own) {
  Budget parent(Allowance{.time = 10s});
  parent.start(kBudgetStart);
  auto longer = *parent.split({.time = 1h});
  auto shorter = *parent.split({.time = 1s});
  EXPECT_EQ(longer.start(kBudgetStart + 4s), Deadline(kBudgetStart + 10s));
  EXPECT_EQ(shorter.start(kBudgetStart + 4s), Deadline(kBudgetStart + 5s));
  EXPECT_EQ(parent.deadline(kBudgetStart + 4s), Deadline(kBudgetStart + 10s));
}

// Behaviour 114.
TEST(Budget, a_child_takes_from_its_parent_and_returns_the_rest) {
  Budget parent(Allowance{.tokens = 100});
  {
    auto child = *parent.split({.tokens = 60});
    EXPECT_EQ(parent.remaining(kBudgetStart).tokens, 40);
    EXPECT_TRUE(child.spend({.tokens = 25}));
    EXPECT_EQ(parent.remaining(kBudgetStart).tokens, 40) << "what was carved out is the child's";
    EXPECT_EQ(parent.spent().tokens, 25);
    EXPECT_FALSE(child.spend({.tokens = 36}));
    EXPECT_TRUE(parent.spend({.tokens = 40})) << "the child's smaller bound is not the parent's";
  }
  EXPECT_EQ(parent.remaining(kBudgetStart).tokens, 35);
  EXPECT_EQ(parent.spent().tokens, 65);
}

// Behaviour 114.
TEST(Budget, a_child_cannot_be_larger_than_what_is_left) {
  Budget parent(Allowance{.tokens = 100});
  auto child = *parent.split({.tokens = 60});
  const auto second = parent.split({.tokens = 41});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error(), Errc::exhausted);
  EXPECT_EQ(parent.remaining(kBudgetStart).tokens, 40) << "nothing was taken";
}

TEST(Budget, resources_that_a_child_does_not_bound_are_shared) {
  Budget parent(Allowance{.attempts = 2, .tokens = 100, .cost_micros = 50});
  auto child = *parent.split({.tokens = 60});
  auto grandchild = *child.split({});
  EXPECT_TRUE(grandchild.spend({.attempts = 1, .tokens = 10, .cost_micros = 20}));
  EXPECT_EQ(parent.remaining(kBudgetStart), (Allowance{.attempts = 1, .tokens = 40, .cost_micros = 30}));
  EXPECT_EQ(child.remaining(kBudgetStart), (Allowance{.attempts = 1, .tokens = 50, .cost_micros = 30}));
  EXPECT_TRUE(parent.spend({.attempts = 1}));
  EXPECT_EQ(grandchild.spend({.attempts = 1}).error(), Errc::exhausted);
}

TEST(Budget, an_overrun_of_a_child_is_charged_to_the_parent_at_once) {
  Budget parent(Allowance{.cost_micros = 100});
  auto child = *parent.split({.cost_micros = 40});
  auto grandchild = *child.split({.cost_micros = 40});
  auto call = *grandchild.reserve({.cost_micros = 40});
  call.settle({.cost_micros = 70});
  EXPECT_EQ(grandchild.remaining(kBudgetStart).cost_micros, 0);
  EXPECT_EQ(parent.remaining(kBudgetStart).cost_micros, 30);
  grandchild.settle();
  child.settle();
  EXPECT_EQ(parent.remaining(kBudgetStart).cost_micros, 30);
  EXPECT_EQ(parent.spent().cost_micros, 70);
}

TEST(Budget, a_settled_child_refuses_and_its_reservations_settle_with_the_parent) {
  Budget parent(Allowance{.tokens = 100});
  auto child = std::make_optional(*parent.split({.tokens = 60}));
  auto grandchild = *child->split({.tokens = 20});
  auto call = *child->reserve({.tokens = 10});
  child->settle();
  child->settle();  // may be repeated
  EXPECT_EQ(parent.remaining(kBudgetStart).tokens, 70) << "30 are still out";
  EXPECT_EQ(child->reserve({.tokens = 1}).error(), Errc::closed);
  EXPECT_EQ(grandchild.reserve({.tokens = 1}).error(), Errc::closed);
  child.reset();
  call.settle({.tokens = 4});
  grandchild.settle();
  EXPECT_EQ(parent.remaining(kBudgetStart).tokens, 96);
  EXPECT_EQ(parent.spent().tokens, 4);
}

TEST(Budget, a_reservation_may_outlive_its_budget) {
  auto budget = std::make_optional<Budget>(Allowance{.tokens = 10});
  auto call = *budget->reserve({.tokens = 10});
  budget.reset();
  call.settle({.tokens = 3});
}

TEST(Budget, nested_splits_are_bounded) {
  std::vector<Budget> chain;
  chain.emplace_back(Allowance{.tokens = 10});
  for (int i = 0; i < Budget::kDepthMax; ++i) chain.push_back(*chain.back().split({.tokens = 10}));
  EXPECT_EQ(chain.back().split({}).error(), Errc::invalid);
  EXPECT_TRUE(chain.back().spend({.tokens = 7}));
  while (chain.size() > 1) chain.pop_back();
  EXPECT_EQ(chain.front().remaining(kBudgetStart).tokens, 3);
}

TEST(Budget, sums_saturate_instead_of_wrapping) {
  Budget budget;
  auto child = *budget.split({.tokens = Allowance::kUnlimited - 1});
  auto second = *budget.split({.tokens = Allowance::kUnlimited - 1});
  auto call = *child.reserve({.tokens = Budget::kAmountMax});
  call.settle({.tokens = Allowance::kUnlimited});
  EXPECT_EQ(child.spent().tokens, Budget::kAmountMax);
  EXPECT_EQ(budget.remaining(kBudgetStart).tokens, Allowance::kUnlimited);
}

// Behaviour 111. Thirty-two threads request more than there is: the granted amounts add up to the total.
TEST(BudgetThreads, accounting_under_concurrency_is_exact) {
  constexpr int kThreads = 32;
  constexpr std::int64_t kTokens = 100'003;
  Budget budget(Allowance{.tokens = kTokens});
  std::vector<std::int64_t> granted(kThreads);
  on_threads(kThreads, [&](int id) {
    for (std::int64_t amount = 1 + id % 3; budget.spend({.tokens = amount});) granted[id] += amount;
    while (budget.spend({.tokens = 1})) ++granted[id];
  });
  std::int64_t sum = 0;
  for (const std::int64_t one : granted) sum += one;
  EXPECT_EQ(sum, kTokens);
  EXPECT_EQ(budget.spent().tokens, kTokens);
  EXPECT_EQ(budget.remaining(kBudgetStart).tokens, 0);
}

// Behaviour 111. Two threads race for the last token of each of many budgets: exactly one gets it.
TEST(BudgetThreads, of_two_threads_only_one_gets_the_last_token) {
  constexpr int kRounds = 30'000;
  std::vector<Budget> budgets;
  for (int i = 0; i < kRounds; ++i) budgets.emplace_back(Allowance{.tokens = 1});
  std::atomic<int> granted = 0;
  const auto spend = [&](int round) {
    if (budgets[static_cast<std::size_t>(round)].spend({.tokens = 1})) granted.fetch_add(1);
  };
  const int count = race_rounds(
      kRounds,
      [&](int round, auto begin, auto end) {
        begin();
        spend(round);
        end();
      },
      spend);
  EXPECT_EQ(granted.load(), count);
}

// Behaviour 111. Children are split, used, overrun and dropped on all threads; afterwards only the used amount is
// missing.
TEST(BudgetThreads, splits_and_settlements_conserve) {
  constexpr int kThreads = 16;
  constexpr int kRounds = 500;
  Budget budget(Allowance{.attempts = 1'000'000, .tokens = 1'000'000});
  std::vector<Spend> used(kThreads);
  on_threads(kThreads, [&](int id) {
    for (int round = 0; round < kRounds; ++round) {
      auto child = budget.split({.tokens = 20});
      auto kept = child->reserve({.attempts = 1, .tokens = 10});
      auto dropped = child->reserve({.attempts = 1, .tokens = 10});
      const std::int64_t tokens = (id * kRounds + round) % 31;  // up to three times the reserved amount
      if (round % 2 == 0) child->settle();
      kept->settle({.attempts = 1, .tokens = tokens});
      used[id].attempts += 1;
      used[id].tokens += tokens;
    }
  });
  Spend sum;
  for (const Spend& one : used) sum = {.attempts = sum.attempts + one.attempts, .tokens = sum.tokens + one.tokens};
  EXPECT_EQ(budget.spent(), sum);
  EXPECT_EQ(budget.remaining(kBudgetStart).attempts, 1'000'000 - sum.attempts);
  EXPECT_EQ(budget.remaining(kBudgetStart).tokens, 1'000'000 - sum.tokens);
}

}  // namespace
}  // namespace stint
