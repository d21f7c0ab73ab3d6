// set_capacity: growth, debt, pause, and what can never be had any more.
#include "semaphore_test_support.hpp"

namespace stint {
namespace {

TEST(SemaphoreResize, makes_a_debt_and_fails_what_became_impossible) {
  Line line(2);
  auto held = line.semaphore.try_acquire(2);
  line.enter("two", 2);
  line.enter("one", 1);
  EXPECT_TRUE(line.semaphore.set_capacity(0));
  line.run();
  EXPECT_EQ(line.log, Log{}) << "0 pauses";
  EXPECT_TRUE(line.semaphore.set_capacity(1));
  EXPECT_EQ(line.semaphore.available(), -1);
  line.run();
  EXPECT_EQ(line.log, Log{"two: invalid"});
  held.reset();
  line.run();
  EXPECT_EQ(line.log, (Log{"two: invalid", "one"}));
}

}  // namespace
}  // namespace stint
