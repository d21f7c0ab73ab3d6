#include "domain/budget_core.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace stint::domain {
namespace {

using namespace std::chrono_literals;

const BudgetSpec kNone;
const BudgetSpec kAll{.time = 10s, .attempts = 3, .tokens = 100, .cost_micros = 5};

struct Case {
  const char* name;
  Use below, at, above;
  Resource resource;
};
const std::array kCases{
    Case{"time", {.time = 9s}, {.time = 10s}, {.time = 10s + 1ms}, Resource::time},
    Case{"attempts", {.attempts = 2}, {.attempts = 3}, {.attempts = 4}, Resource::attempts},
    Case{"tokens", {.tokens = 99}, {.tokens = 100}, {.tokens = 101}, Resource::tokens},
    Case{"cost", {.cost_micros = 4}, {.cost_micros = 5}, {.cost_micros = 6}, Resource::cost},
};

TEST(BudgetCore, nothing_begins_at_the_budget_and_work_ends_above_it) {
  for (const Case& each : kCases) {
    EXPECT_EQ(used_up(kAll, each.below), std::nullopt) << each.name;
    EXPECT_EQ(exceeded(kAll, each.below), std::nullopt) << each.name;
    EXPECT_EQ(used_up(kAll, each.at), each.resource) << each.name;
    EXPECT_EQ(exceeded(kAll, each.at), std::nullopt) << each.name << ": all of it may be used";
    EXPECT_EQ(used_up(kAll, each.above), each.resource) << each.name;
    EXPECT_EQ(exceeded(kAll, each.above), each.resource) << each.name;
    EXPECT_EQ(used_up(kNone, each.above), std::nullopt) << each.name << ": not bounded";
    EXPECT_EQ(exceeded(kNone, each.above), std::nullopt) << each.name;
  }
}

TEST(BudgetCore, what_is_left_of_what_is_not_bounded_is_not_bounded) {
  EXPECT_EQ(left(kNone, {.tokens = 7, .attempts = 1, .time = 1h}), kNone);
  EXPECT_EQ(left(kAll, {.tokens = 120, .cost_micros = 5, .attempts = 1, .time = 4s}),
            (BudgetSpec{.time = 6s, .attempts = 2, .tokens = -20, .cost_micros = 0}));
  EXPECT_EQ(tighter(kAll, kNone), kAll);
  EXPECT_EQ(tighter(kNone, kAll), kAll);
  EXPECT_EQ(tighter(kAll, {.time = 11s, .tokens = 1}), (BudgetSpec{10s, 3, 1, 5}));
}

TEST(BudgetCore, runs_share_tokens_and_cost) {
  EXPECT_EQ(shared_part({.time = 1s, .attempts = 2}), std::nullopt);
  EXPECT_EQ(shared_part(kAll), (BudgetSpec{.tokens = 100, .cost_micros = 5}));
}

TEST(BudgetCore, a_run_has_at_least_one_attempt) {
  EXPECT_EQ(attempts_of(kNone), 3U);
  EXPECT_EQ(attempts_of({.attempts = 0}), 1U);
  EXPECT_EQ(attempts_of({.attempts = 1 << 30}), 1000U);
}

/// Work goes on within several budgets exactly as long as within each of them.
TEST(BudgetCore, the_tighter_of_what_is_left_decides_as_each_alone_does) {
  std::mt19937 random(1);
  const auto draw = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(most));
  };
  const auto maybe = [&] { return draw(3) == 0 ? std::nullopt : std::optional(draw(20)); };
  for (int i = 0; i < 2000; ++i) {
    const BudgetSpec a{.tokens = maybe(), .cost_micros = maybe()}, b{.tokens = maybe(), .cost_micros = maybe()};
    const Use of_a{.tokens = draw(20), .cost_micros = draw(20)}, of_b{.tokens = draw(20), .cost_micros = draw(20)};
    const Use more{.tokens = draw(10), .cost_micros = draw(10)};
    const BudgetSpec both = tighter(left(a, of_a), left(b, of_b));
    EXPECT_EQ(used_up(both, more).has_value(),
              used_up(a, of_a + more).has_value() || used_up(b, of_b + more).has_value());
    EXPECT_EQ(exceeded(both, more).has_value(),
              exceeded(a, of_a + more).has_value() || exceeded(b, of_b + more).has_value());
  }
}

}  // namespace
}  // namespace stint::domain
