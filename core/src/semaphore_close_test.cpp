// The end of a semaphore, and of those who use it.
#include "semaphore_test_support.hpp"

namespace stint {
namespace {

TEST(SemaphoreClose, wakes_everybody_and_permits_still_return) {
  Line line(2);
  auto held = line.semaphore.try_acquire(2);
  line.enter("a");
  line.semaphore.close();
  line.run();
  line.enter("b");
  EXPECT_EQ(line.log, (Log{"a: closed", "b: closed"}));
  EXPECT_FALSE(line.semaphore.try_acquire());
}

}  // namespace
}  // namespace stint
