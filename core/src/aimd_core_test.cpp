#include "stint/aimd_core.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace stint {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kAimdStart{1000h};
constexpr AimdPolicy kAimdPolicy{.min = 2, .max = 50, .initial = 10, .decrease = 0.5, .growth_interval = 1s};

/// Begins `count` and ends them all with `signal`.
void load(AimdCore& core, std::uint32_t count, LoadSignal signal, TimePoint now) {
  std::vector<AimdCore::Sample> samples;
  for (std::uint32_t i = 0; i < count; ++i) samples.push_back(core.begin());
  for (const AimdCore::Sample sample : samples) core.end(sample, signal, now);
}

TEST(Aimd, grows_by_one_while_calls_succeed) {
  AimdCore core(kAimdPolicy);
  for (int second = 0; second < 5; ++second) load(core, core.limit(), LoadSignal::success, kAimdStart + second * 1s);
  EXPECT_EQ(core.limit(), 15u);
}

TEST(Aimd, shrinks_by_a_factor_on_overload) {
  AimdCore core(kAimdPolicy);
  EXPECT_TRUE(core.end(core.begin(), LoadSignal::overload, kAimdStart));
  EXPECT_EQ(core.limit(), 5u);
}

TEST(Aimd, growth_rate_is_bounded) {
  AimdCore core(kAimdPolicy);
  load(core, 10, LoadSignal::success, kAimdStart);
  EXPECT_EQ(core.limit(), 11u) << "ten successes at once are one step";
  load(core, 10, LoadSignal::success, kAimdStart + 999ms);
  EXPECT_EQ(core.limit(), 11u);
  load(core, 10, LoadSignal::success, kAimdStart + 1s);
  EXPECT_EQ(core.limit(), 12u);
}

TEST(Aimd, growth_rate_is_bounded_after_a_decrease_too) {
  AimdCore core(kAimdPolicy);
  load(core, 10, LoadSignal::overload, kAimdStart);
  load(core, 5, LoadSignal::success, kAimdStart + 999ms);
  EXPECT_EQ(core.limit(), 5u);
  load(core, 5, LoadSignal::success, kAimdStart + 1s);
  EXPECT_EQ(core.limit(), 6u);
}

// Behaviour 115.
TEST(Aimd, cancelled_work_is_not_a_sample) {
  AimdCore core(kAimdPolicy);
  for (int second = 0; second < 100; ++second) load(core, core.limit(), LoadSignal::ignored, kAimdStart + second * 1s);
  EXPECT_EQ(core.limit(), 10u);
  EXPECT_EQ(core.inflight(), 0u);
}

// Behaviour 116.
TEST(Aimd, does_not_grow_while_less_than_half_of_it_is_used) {
  AimdCore core(kAimdPolicy);
  for (int second = 0; second < 100; ++second) load(core, 4, LoadSignal::success, kAimdStart + second * 1s);
  EXPECT_EQ(core.limit(), 10u);
  load(core, 5, LoadSignal::success, kAimdStart + 200s);
  EXPECT_EQ(core.limit(), 11u) << "half is enough";
}

// Behaviour 117.
TEST(Aimd, stays_within_its_bounds) {
  AimdCore core(kAimdPolicy);
  for (int second = 0; second < 100; ++second) load(core, core.limit(), LoadSignal::success, kAimdStart + second * 1s);
  EXPECT_EQ(core.limit(), 50u);
  for (int second = 0; second < 100; ++second) load(core, 1, LoadSignal::overload, kAimdStart + second * 1s);
  EXPECT_EQ(core.limit(), 2u);
}

// Behaviour 117.
TEST(Aimd, recovers_after_ten_minutes_of_errors) {
  AimdCore core({.min = 1, .max = 20, .initial = 20});
  TimePoint now = kAimdStart;
  for (; now < kAimdStart + 10min; now += 1s) load(core, core.limit(), LoadSignal::overload, now);
  EXPECT_EQ(core.limit(), 1u);
  const TimePoint well_again = now;
  while (core.limit() < 20 && now < well_again + 1h) load(core, core.limit(), LoadSignal::success, now += 1s);
  EXPECT_EQ(core.limit(), 20u);
  EXPECT_LE(now, well_again + 20s);
}

// Behaviour 118.
TEST(Aimd, one_burst_of_refusals_causes_one_decrease) {
  AimdCore core(kAimdPolicy);
  load(core, 10, LoadSignal::overload, kAimdStart);
  EXPECT_EQ(core.limit(), 5u) << "ten calls of one epoch";
  load(core, 5, LoadSignal::overload, kAimdStart + 1s);
  EXPECT_EQ(core.limit(), 2u) << "those of the next epoch count again";
}

// Behaviour 118.
TEST(Aimd, successes_from_before_a_decrease_do_not_undo_it) {
  AimdCore core(kAimdPolicy);
  std::vector<AimdCore::Sample> old;
  for (int i = 0; i < 9; ++i) old.push_back(core.begin());
  core.end(core.begin(), LoadSignal::overload, kAimdStart);
  TimePoint now = kAimdStart + 1min;
  for (const AimdCore::Sample sample : old) EXPECT_FALSE(core.end(sample, LoadSignal::success, now += 1min));
  EXPECT_EQ(core.limit(), 5u);
}

TEST(Aimd, invalid_policy_values_are_clamped) {
  EXPECT_EQ(AimdCore({.min = 0, .max = 0, .initial = 0}).limit(), 1u);
  EXPECT_EQ(AimdCore({.min = 5, .max = 3, .initial = 100}).limit(), 5u);
  for (const double decrease : {-1.0, 0.0, 1.0, 100.0, std::nan("")}) {
    AimdCore core({.min = 1, .max = 100, .initial = 100, .decrease = decrease});
    load(core, 1, LoadSignal::overload, kAimdStart);
    EXPECT_LT(core.limit(), 100u) << decrease;
    EXPECT_GE(core.limit(), 10u) << decrease;
  }
  AimdCore never({.growth_interval = Duration::max()});
  load(never, 20, LoadSignal::success, kAimdStart);
  load(never, 20, LoadSignal::success, kAimdStart + 1000h);
  EXPECT_EQ(never.limit(), 21u);
}

}  // namespace
}  // namespace stint
