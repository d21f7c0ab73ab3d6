// The semaphore's counting and its order.
#include "semaphore_test_support.hpp"

namespace stint {
namespace {

TEST(Semaphore, large_head_is_not_overtaken) {
  Line line(2);
  auto held = line.semaphore.try_acquire(1);
  line.enter("big", 2);
  line.enter("small", 1);
  EXPECT_EQ(line.semaphore.available(), 1);
  EXPECT_FALSE(line.semaphore.try_acquire()) << "barging";
  held.reset();
  line.run();
  EXPECT_EQ(line.log, Log{"big"});
}

}  // namespace
}  // namespace stint
