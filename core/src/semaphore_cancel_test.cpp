// Waits that end by a cancel or a deadline.
#include "semaphore_test_support.hpp"

namespace stint {
namespace {

TEST(SemaphoreCancel, cancelled_head_wakes_those_it_blocked) {
  Line line(2);
  auto held = line.semaphore.try_acquire(1);
  line.enter("big", 2);
  line.enter("small", 1);
  line.cancel("big");
  line.run();
  EXPECT_EQ(std::ranges::count(line.log, "small"), 1);
}
TEST(SemaphoreCancel, a_cancel_after_the_grant_but_before_the_resume_serves_the_next) {
  Line line(2);
  auto held = line.semaphore.try_acquire(2);
  line.enter("first", 2);
  line.enter("second", 2);
  held.reset();
  EXPECT_EQ(line.semaphore.waiting(), 1u);  // granted, not yet resumed
  line.cancel("first");
  line.run();
  EXPECT_EQ(line.log, (Log{"first: stopped", "second"}));
}
TEST(SemaphoreCancel, timed_out_head_wakes_those_it_blocked) {
  Line line(2);
  auto held = line.semaphore.try_acquire(1);
  line.enter_until("big", TimePoint(2s), 2);
  line.enter("small", 1);
  line.sim.advance(2s);
  EXPECT_EQ(std::set<std::string>(line.log.begin(), line.log.end()),
            (std::set<std::string>{"big: timed out", "small"}));
}

}  // namespace
}  // namespace stint
