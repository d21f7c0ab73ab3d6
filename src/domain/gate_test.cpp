#include "domain/gate.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace stint::domain {
namespace {

constexpr std::int64_t kHeavy = 1, kLight = 2;

Gate gate(std::uint32_t capacity, std::int64_t held, std::uint32_t weight = 1) {
  Gate gate;
  gate.capacity = capacity;
  gate.units = held;
  gate.runs = held;
  gate.weight = weight;
  gate.shared = true;
  return gate;
}

TEST(Gates, the_tightest_decides) {
  EXPECT_EQ(ask_gates(kLight, {}).free, std::nullopt) << "no limit";
  EXPECT_EQ(ask_gates(kLight, {gate(5, 1), gate(3, 1)}).free, 2);
  EXPECT_EQ(ask_gates(kLight, {gate(9, 2, 3)}).free, 2) << "7 free units are two runs of 3";
  EXPECT_LT(ask_gates(kLight, {gate(2, 5)}).free, 1) << "lowered below what is held";
  Gate open;
  EXPECT_EQ(ask_gates(kLight, {open}).free, std::nullopt);
  EXPECT_EQ(ask_gates(kLight, {open, gate(4, 0)}).free, 4);
}

TEST(Gates, a_pause_lets_nobody_through_and_a_ramp_a_few) {
  Gate paused = gate(9, 0);
  paused.paused = true;
  EXPECT_EQ(ask_gates(kLight, {gate(9, 0), paused}).free, 0);
  Gate ramp;
  ramp.ramp = 1;
  EXPECT_EQ(ask_gates(kLight, {ramp}).free, 1) << "the probe";
  ramp.runs = 1;
  EXPECT_EQ(ask_gates(kLight, {ramp}).free, 0);
}

TEST(Ramp, doubles_until_it_is_no_limit) {
  std::optional<std::uint32_t> ramp = 1;
  int steps = 0;
  for (; ramp; ++steps) ramp = wider_ramp(*ramp, std::nullopt);
  EXPECT_EQ(steps, 6);
  EXPECT_EQ(wider_ramp(1, 2), std::nullopt) << "as wide as the limit itself";
  EXPECT_EQ(wider_ramp(1, 3), 2U);
}

TEST(Turns, a_heavy_request_that_does_not_fit_takes_the_turn_and_others_leave_the_gate_alone) {
  EXPECT_EQ(ask_gates(kHeavy, {gate(4, 1, 4)}).take_turn, std::vector<std::size_t>{0});
  EXPECT_TRUE(ask_gates(kLight, {gate(4, 4)}).take_turn.empty()) << "a light one fits whenever one unit is free";
  Gate taken = gate(4, 1);
  taken.turn_of = kHeavy;
  EXPECT_EQ(ask_gates(kLight, {taken}).free, 0);
  taken.turn_lapsed = true;
  EXPECT_EQ(ask_gates(kLight, {taken}).free, 3) << "who asks no more loses its turn";
}

TEST(Turns, after_its_turn_a_heavy_request_waits_for_another_to_be_served) {
  Gate drained = gate(4, 0, 4);
  drained.turn_of = kHeavy;
  const GateAnswer served = ask_gates(kHeavy, {drained});
  EXPECT_EQ(served.free, 1);
  EXPECT_EQ(served.clear_turn, std::vector<std::size_t>{0});

  Gate again = gate(4, 1, 4);
  again.last_turn_of = kHeavy;
  EXPECT_TRUE(ask_gates(kHeavy, {again}).take_turn.empty());
  Gate others = gate(4, 1);
  others.last_turn_of = kHeavy;
  EXPECT_EQ(ask_gates(kLight, {others}).clear_turn, std::vector<std::size_t>{0}) << "now it may";
}

TEST(Turns, none_is_taken_where_another_gate_of_the_set_is_paused_or_taken) {
  Gate paused = gate(9, 0);
  paused.paused = true;
  EXPECT_TRUE(ask_gates(kHeavy, {gate(4, 1, 4), paused}).take_turn.empty());
  Gate taken = gate(9, 0);
  taken.turn_of = kLight;
  EXPECT_TRUE(ask_gates(kHeavy, {gate(4, 1, 4), taken}).take_turn.empty());
}

TEST(Gates, what_is_let_through_never_exceeds_a_capacity) {
  EXPECT_TRUE(rc::check([](const std::vector<std::tuple<std::uint8_t, std::uint8_t, std::uint8_t>>& drawn) {
    std::vector<Gate> gates;
    for (const auto& [capacity, held, weight] : drawn) gates.push_back(gate(capacity + 1U, held, weight + 1U));
    const auto free = ask_gates(kLight, gates).free;
    for (const Gate& one : gates) {
      RC_ASSERT(free);
      if (*free > 0) RC_ASSERT(one.units + *free * std::int64_t{one.weight} <= std::int64_t{*one.capacity});
    }
  }));
}

}  // namespace
}  // namespace stint::domain
