// The wheel against a sorted list: what is due fires, in order of ticks, never early, also years ahead.
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
    std::mt19937_64 random(seed);
    std::vector<Alarm*> fired;
    std::vector<std::unique_ptr<Alarm>> alarms;
    std::multimap<Tick, Alarm*> model;
    TimerWheel wheel;
    Tick now = 0;
    for (int step = 0; step < 300; ++step) {
      if (random() % 3 != 0) {
        auto& alarm = alarms.emplace_back(std::make_unique<Alarm>(fired));
        alarm->due = now + 1 + (random() >> (8 + random() % 56));  // near ones and ones that are centuries off
        wheel.arm(*alarm, alarm->due);
        model.emplace(alarm->due, alarm.get());
      } else if (random() % 4 == 0 && !model.empty()) {
        auto gone = std::next(model.begin(), static_cast<std::ptrdiff_t>(random() % model.size()));
        gone->second->unlink();
        model.erase(gone);
      }
      const auto next = wheel.next_tick();
      ASSERT_EQ(next.has_value(), !model.empty());
      if (next) {
        ASSERT_LE(*next, model.begin()->first) << "would oversleep";
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

TEST(TimerWheelTest, a_timer_beyond_its_reach_neither_hangs_nor_fires_early) {
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
