#include "domain/limit_rule.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace stint::domain {
namespace {

constexpr AgentNumber kHeavy{1}, kLight{2};

LimitLoad limit(std::uint32_t capacity, std::int64_t held, std::uint32_t weight = 1) {
  LimitLoad limit;
  limit.capacity = capacity;
  limit.units = held;
  limit.runs = held;
  limit.weight = weight;
  limit.shared = true;
  return limit;
}

TEST(Limits, the_tightest_decides) {
  EXPECT_EQ(ask_limits(kLight, {}).free, std::nullopt) << "no limit";
  EXPECT_EQ(ask_limits(kLight, {limit(5, 1), limit(3, 1)}).free, 2);
  EXPECT_EQ(ask_limits(kLight, {limit(9, 2, 3)}).free, 2) << "7 free units are two runs of 3";
  EXPECT_LT(ask_limits(kLight, {limit(2, 5)}).free, 1) << "lowered below what is held";
  LimitLoad open;
  EXPECT_EQ(ask_limits(kLight, {open}).free, std::nullopt);
  EXPECT_EQ(ask_limits(kLight, {open, limit(4, 0)}).free, 4);
}

TEST(Limits, a_pause_admits_no_run_and_a_ramp_admits_few) {
  LimitLoad paused = limit(9, 0);
  paused.paused = true;
  EXPECT_EQ(ask_limits(kLight, {limit(9, 0), paused}).free, 0);
  LimitLoad ramp;
  ramp.ramp = 1;
  EXPECT_EQ(ask_limits(kLight, {ramp}).free, 1) << "the probe";
  ramp.runs = 1;
  EXPECT_EQ(ask_limits(kLight, {ramp}).free, 0);
}

TEST(Ramp, doubles_until_it_is_over) {
  std::optional<std::uint32_t> ramp = 1;
  int steps = 0;
  for (; ramp; ++steps) ramp = wider_ramp(*ramp, std::nullopt);
  EXPECT_EQ(steps, 6);
  EXPECT_EQ(wider_ramp(1, 2), std::nullopt) << "as wide as the limit itself";
  EXPECT_EQ(wider_ramp(1, 3), 2U);
}

TEST(Turns, a_heavy_request_that_does_not_fit_takes_the_turn_and_blocks_other_agents) {
  EXPECT_EQ(ask_limits(kHeavy, {limit(4, 1, 4)}).take_turn, std::vector<std::size_t>{0});
  EXPECT_TRUE(ask_limits(kLight, {limit(4, 4)}).take_turn.empty()) << "a light one fits whenever one unit is free";
  LimitLoad taken = limit(4, 1);
  taken.turn_of = kHeavy;
  EXPECT_EQ(ask_limits(kLight, {taken}).free, 0);
  taken.turn_lapsed = true;
  EXPECT_EQ(ask_limits(kLight, {taken}).free, 3) << "a turn that is not renewed lapses";
}

TEST(Turns, after_its_turn_a_heavy_request_waits_for_another_to_be_served) {
  LimitLoad drained = limit(4, 0, 4);
  drained.turn_of = kHeavy;
  const LimitAnswer served = ask_limits(kHeavy, {drained});
  EXPECT_EQ(served.free, 1);
  EXPECT_EQ(served.clear_turn, std::vector<std::size_t>{0});

  LimitLoad again = limit(4, 1, 4);
  again.last_turn_of = kHeavy;
  EXPECT_TRUE(ask_limits(kHeavy, {again}).take_turn.empty());
  LimitLoad others = limit(4, 1);
  others.last_turn_of = kHeavy;
  EXPECT_EQ(ask_limits(kLight, {others}).clear_turn, std::vector<std::size_t>{0})
      << "the heavy one may take its turn again";
}

TEST(Turns, none_is_taken_if_another_limit_of_the_set_is_paused_or_has_a_turn) {
  LimitLoad paused = limit(9, 0);
  paused.paused = true;
  EXPECT_TRUE(ask_limits(kHeavy, {limit(4, 1, 4), paused}).take_turn.empty());
  LimitLoad taken = limit(9, 0);
  taken.turn_of = kLight;
  EXPECT_TRUE(ask_limits(kHeavy, {limit(4, 1, 4), taken}).take_turn.empty());
}

TEST(Limits, admitted_runs_never_exceed_a_capacity) {
  EXPECT_TRUE(rc::check([](const std::vector<std::tuple<std::uint8_t, std::uint8_t, std::uint8_t>>& drawn) {
    std::vector<LimitLoad> limits;
    for (const auto& [capacity, held, weight] : drawn) limits.push_back(limit(capacity + 1U, held, weight + 1U));
    const auto free = ask_limits(kLight, limits).free;
    for (const LimitLoad& one : limits) {
      RC_ASSERT(free);
      if (*free > 0) RC_ASSERT(one.units + *free * std::int64_t{one.weight} <= std::int64_t{*one.capacity});
    }
  }));
}

}  // namespace
}  // namespace stint::domain
