// The guarantees of `autoscale` over random options, loads and times.
#include "stint/autoscale_core.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

namespace stint {
namespace {

using namespace std::chrono_literals;
using Why = AutoscaleDecision::Why;

AutoscaleLoad load(std::size_t workers, std::size_t busy, std::size_t startable = 0) {
  AutoscaleLoad seen;
  seen.workers = workers;
  seen.busy = busy;
  seen.startable = startable;
  seen.queue_capacity = 100;
  return seen;
}
AutoscaleDecision decide(const AutoscaleLoad& seen, TimePoint now = TimePoint(1h)) { return autoscale({}, seen, now); }

TEST(Autoscale, grows_above_80_percent_utilization) {
  EXPECT_EQ(decide(load(10, 8)), (AutoscaleDecision{10, Why::fits}));
  EXPECT_EQ(decide(load(10, 9)), (AutoscaleDecision{12, Why::busy}));
}
TEST(Autoscale, grows_above_half_a_queue) {
  EXPECT_EQ(decide(load(10, 5, 50)), (AutoscaleDecision{10, Why::fits}));
  EXPECT_EQ(decide(load(10, 5, 51)), (AutoscaleDecision{12, Why::queue}));
}
TEST(Autoscale, shrinks_below_30_percent_unless_the_queue_is_filling) {
  EXPECT_EQ(decide(load(10, 3)), (AutoscaleDecision{10, Why::fits}));
  EXPECT_EQ(decide(load(10, 2)), (AutoscaleDecision{8, Why::quiet}));
  EXPECT_EQ(decide(load(10, 2, 60)), (AutoscaleDecision{12, Why::queue}));
}
TEST(Autoscale, steps_by_a_quarter_and_at_least_one) {
  EXPECT_EQ(decide(load(2, 2)).workers, 3u);
  EXPECT_EQ(decide(load(40, 40)).workers, 50u);
  EXPECT_EQ(decide(load(48, 48)).workers, 50u);
  EXPECT_EQ(decide(load(40, 0)).workers, 30u);
  EXPECT_EQ(decide(load(3, 0)).workers, 2u);
  EXPECT_EQ(decide(load(2, 0)), (AutoscaleDecision{2, Why::fits}));
}
TEST(Autoscale, cools_down) {
  AutoscaleLoad seen = load(10, 10);
  seen.changed_at = TimePoint(100s);
  EXPECT_EQ(decide(seen, TimePoint(109s)), (AutoscaleDecision{10, Why::cooling}));
  EXPECT_EQ(decide(seen, TimePoint(110s)), (AutoscaleDecision{12, Why::busy}));
  seen.busy = 0;
  EXPECT_EQ(decide(seen, TimePoint(129s)), (AutoscaleDecision{10, Why::cooling}));
  EXPECT_EQ(decide(seen, TimePoint(130s)), (AutoscaleDecision{8, Why::quiet}));
}
TEST(Autoscale, leaves_a_paused_pool_alone_and_corrects_other_sizes) {
  EXPECT_EQ(decide(load(0, 0, 100)), (AutoscaleDecision{0, Why::paused}));
  EXPECT_EQ(decide(load(1, 0)), (AutoscaleDecision{2, Why::below_min}));
  EXPECT_EQ(decide(load(60, 20)), (AutoscaleDecision{50, Why::above_max}));
  EXPECT_EQ(decide(load(60, 55)), (AutoscaleDecision{55, Why::above_max})) << "busy ones are not taken";
}

void check_promises(const AutoscaleOptions& options, const AutoscaleLoad& seen, TimePoint now) {
  const std::size_t most = std::max(options.min, options.max);
  const std::size_t idle = seen.workers - std::min(seen.busy, seen.workers);
  const std::size_t step = std::max<std::size_t>(1, seen.workers / 4);

  const AutoscaleDecision decision = autoscale(options, seen, now);
  const bool grew = decision.workers > seen.workers, shrank = decision.workers < seen.workers;
  if (seen.workers == 0) RC_ASSERT(decision.workers == 0u);
  if (grew) RC_ASSERT(decision.workers <= most);
  if (shrank) {
    RC_ASSERT(decision.workers >= options.min);
    RC_ASSERT(seen.workers - decision.workers <= idle);
  }
  if (seen.workers >= options.min && seen.workers <= most && seen.workers != 0) {
    if (grew) RC_ASSERT(decision.workers - seen.workers <= step);
    if (shrank) RC_ASSERT(seen.workers - decision.workers <= step);
    if (seen.changed_at && grew) RC_ASSERT(now - *seen.changed_at >= options.up_cool_down);
    if (seen.changed_at && shrank) RC_ASSERT(now - *seen.changed_at >= options.down_cool_down);
  }
  const bool reason_to_stay = decision.why == Why::fits || decision.why == Why::paused || decision.why == Why::cooling;
  if (grew || shrank) RC_ASSERT(!reason_to_stay);
}
void decisions_satisfy_the_documented_guarantees() {
  AutoscaleOptions options;
  options.min = *rc::gen::inRange<std::size_t>(0, 20);
  options.max = *rc::gen::inRange<std::size_t>(0, 60);
  options.up_cool_down = std::chrono::seconds(*rc::gen::inRange(0, 60));
  options.down_cool_down = std::chrono::seconds(*rc::gen::inRange(0, 60));
  AutoscaleLoad seen;
  seen.queue_capacity = *rc::gen::inRange<std::size_t>(0, 100);
  seen.startable = *rc::gen::inRange<std::size_t>(0, 200);
  const TimePoint now(std::chrono::seconds(*rc::gen::inRange(0, 200)));
  if (*rc::gen::arbitrary<bool>()) seen.changed_at = now - std::chrono::seconds(*rc::gen::inRange(0, 100));
  for (seen.workers = 0; seen.workers < 70; ++seen.workers) {
    for (seen.busy = 0; seen.busy < seen.workers + 3; ++seen.busy) check_promises(options, seen, now);
  }
}
TEST(AutoscaleProperty, decisions_satisfy_the_documented_guarantees) {
  EXPECT_TRUE(rc::check("autoscale satisfies its guarantees", decisions_satisfy_the_documented_guarantees));
}

/// Under constant load the size converges: it does not oscillate.
void converges_under_constant_load() {
  const AutoscaleOptions options;
  const auto wanted = *rc::gen::inRange<std::size_t>(0, 60);  // how many would be busy if there were enough workers
  std::size_t workers = *rc::gen::inRange<std::size_t>(2, 50);
  AutoscaleLoad seen;
  seen.queue_capacity = 100;
  TimePoint now{};
  int turns = 0, direction = 0;
  for (int check = 0; check < 500; ++check, now += options.check_every) {
    seen.workers = workers;
    seen.busy = std::min(wanted, workers);
    seen.startable = wanted - seen.busy;
    const AutoscaleDecision decision = autoscale(options, seen, now);
    const int way = decision.workers > workers ? 1 : decision.workers < workers ? -1 : 0;
    if (way != 0) seen.changed_at = now;
    turns += way != 0 && direction != 0 && way != direction;
    if (way != 0) direction = way;
    workers = decision.workers;
  }
  RC_ASSERT(turns <= 1);
}
TEST(AutoscaleProperty, converges_under_constant_load) {
  EXPECT_TRUE(rc::check("a steady load gives a steady size", converges_under_constant_load));
}

}  // namespace
}  // namespace stint
