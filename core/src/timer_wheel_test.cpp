// The wheel against a sorted list: due timers fire in order of ticks, never early, also years ahead.
#include "stint/detail/timer_wheel.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <vector>

namespace stint {
namespace {

using Tick = TimerWheel::Tick;

struct Alarm final : Timer {
  explicit Alarm(std::vector<Alarm*>& to) : fired(to) {}
  void fire() noexcept override { fired.push_back(this); }
  std::vector<Alarm*>& fired;
  Tick due = 0;
};

TEST(TimerWheelTest, agrees_with_a_sorted_list_over_random_workloads) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const bool disarms = seed % 2 == 1;
    std::mt19937_64 random(seed);
    std::vector<Alarm*> fired;
    std::vector<std::unique_ptr<Alarm>> alarms;
    std::multimap<Tick, Alarm*> model;
    TimerWheel wheel;
    Tick now = 0;
    for (int step = 0; step < 300; ++step) {
      if (random() % 3 != 0) {
        auto& alarm = alarms.emplace_back(std::make_unique<Alarm>(fired));
        // Near and far timers; without disarming, none is beyond the wheel's range, so that the bound is exact.
        alarm->due = now + 1 + (random() >> (disarms ? 8 + random() % 56 : 34 + random() % 30));
        wheel.arm(*alarm, alarm->due);
        model.emplace(alarm->due, alarm.get());
      } else if (disarms && random() % 4 == 0 && !model.empty()) {
        auto gone = std::next(model.begin(), static_cast<std::ptrdiff_t>(random() % model.size()));
        gone->second->unlink();
        model.erase(gone);
      }
      const auto next = wheel.next_tick();
      ASSERT_EQ(next.has_value(), !model.empty());
      if (next) {
        const Tick first = model.begin()->first;
        ASSERT_LE(*next, first) << "would oversleep";
        if (!disarms) ASSERT_EQ(*next, first) << "would wake for nothing";
      }
      now += random() >> (20 + random() % 44);
      wheel.advance(now);
      std::vector<Alarm*> expected;
      for (auto due = model.begin(); due != model.end() && due->first <= now; due = model.erase(due)) {
        expected.push_back(due->second);
      }
      ASSERT_EQ(fired.size(), expected.size());
      for (std::size_t i = 0; i < fired.size(); ++i) ASSERT_EQ(fired[i]->due, expected[i]->due) << "order of ticks";
      fired.clear();
    }
  }
}

/// Sleeps until the wheel's next tick, repeatedly; returns how often.
int wakes_until_empty(TimerWheel& wheel) {
  int wakes = 0;
  for (auto next = wheel.next_tick(); next; next = wheel.next_tick(), ++wakes) wheel.advance(*next);
  return wakes;
}

TEST(TimerWheelTest, wakes_once_for_a_timer_however_far_it_is) {
  std::vector<Alarm*> fired;
  TimerWheel wheel;
  for (int bits = 0; bits < 36; ++bits) {
    wheel.advance(bits);
    Alarm alarm(fired);
    wheel.arm(alarm, static_cast<Tick>(bits) + (Tick{1} << bits) + 12);
    EXPECT_EQ(wakes_until_empty(wheel), 1) << bits;
  }
  EXPECT_EQ(fired.size(), 36U);
}

TEST(TimerWheelTest, wakes_at_most_once_for_a_timer_that_was_disarmed) {
  std::vector<Alarm*> fired;
  TimerWheel wheel;
  Alarm stays(fired);
  wheel.arm(stays, 90'000);
  {
    Alarm gone(fired);
    wheel.arm(gone, 80'000);
    EXPECT_EQ(wheel.next_tick(), 80'000U);
  }
  EXPECT_LE(wakes_until_empty(wheel), 2);
  EXPECT_EQ(fired.size(), 1U);
}

TEST(TimerWheelTest, a_crowded_slot_is_not_scanned_and_none_of_its_timers_is_late) {
  std::vector<Alarm*> fired;
  TimerWheel wheel;
  std::vector<std::unique_ptr<Alarm>> alarms;
  for (Tick i = 0; i < 4 * TimerWheel::kLookMost; ++i) {
    auto& alarm = alarms.emplace_back(std::make_unique<Alarm>(fired));
    alarm->due = (Tick{1} << 24) + 100'000 - i * 300;  // the last one first
    wheel.arm(*alarm, alarm->due);
  }
  for (auto next = wheel.next_tick(); next; next = wheel.next_tick()) {
    const std::size_t before = fired.size();
    wheel.advance(*next);
    for (std::size_t i = before; i < fired.size(); ++i) ASSERT_EQ(fired[i]->due, *next);
  }
  EXPECT_EQ(fired.size(), alarms.size());
}

TEST(TimerWheelTest, a_timer_beyond_its_range_does_not_hide_earlier_ones) {
  constexpr Tick kFar = Tick{63} << 30;  // a turn of the wheel, less one slot
  std::vector<Alarm*> fired;
  TimerWheel wheel;
  Alarm beyond(fired), later(fired);
  wheel.arm(beyond, 40 * kFar);
  wheel.advance(kFar / 2);
  wheel.arm(later, kFar + kFar / 4);
  for (auto next = wheel.next_tick(); next && fired.empty(); next = wheel.next_tick()) {
    ASSERT_LE(*next, kFar + kFar / 4);
    wheel.advance(*next);
  }
  EXPECT_EQ(fired, std::vector{&later});
}

TEST(TimerWheelTest, a_timer_beyond_its_range_neither_hangs_nor_fires_early) {
  std::vector<Alarm*> fired;
  TimerWheel wheel;
  wheel.advance(12'345);
  Alarm far(fired);
  wheel.arm(far, ~Tick{0} >> 1);
  const Tick two_years = Tick{2} * 366 * 24 * 3600 * 1000;
  for (Tick now = 0; now < 40 * two_years; now += two_years) {
    wheel.advance(now);
    ASSERT_TRUE(fired.empty());
    ASSERT_TRUE(wheel.next_tick().has_value());
  }
}

}  // namespace
}  // namespace stint
