// Many waiters are granted in batches, and the lock is released between two of them. The tests use an executor's
// wake-up, which is called without the lock, to do what another thread could do at that time.
#include "semaphore_test_support.hpp"

#include <algorithm>
#include <vector>

namespace stint {
namespace {

constexpr std::size_t kBatch = Wakes::kMost;

/// A hundred waiters on a sleeping executor, so that every grant needs a wake-up.
struct SemaphoreBatch : testing::Test {
  SemaphoreBatch() {
    held = semaphore.try_acquire(100);
    for (int i = 0; i < 100; ++i) enter(std::to_string(i));
  }
  ~SemaphoreBatch() override {
    executor.on_wake = nullptr;
    held.reset();
    scope.cancel();
    executor.run_ready();
    EXPECT_EQ(semaphore.available(), semaphore.capacity());
  }
  void enter(std::string name, std::uint32_t units = 1) {
    scope.spawn(visit(std::move(name), units));
    executor.run_ready();
  }
  Task<> visit(std::string name, std::uint32_t units) {
    const auto permit = co_await semaphore.acquire(units);
    log.push_back(permit ? name : name + ": " + std::string(to_string(permit.error().code())));
    if (!permit) ++failed;
    co_await sleep_until(TimePoint(1h));
  }
  /// Called at the next wake-up.
  void meanwhile(std::function<void()> act) {
    executor.on_wake = [this, act = std::move(act)] {
      executor.on_wake = nullptr;
      act();
    };
  }

  Log log;
  int failed = 0;
  Semaphore semaphore{"slots", 100};
  std::optional<Permit> held;
  SleepyExecutor executor;
  RootScope scope{executor};
};

TEST_F(SemaphoreBatch, executors_are_woken_after_the_lock_is_released) {
  int looked = 0;
  const auto expect_a_look = [&](auto act) {
    looked = 0;
    meanwhile([&] { looked += semaphore.waiters(1).size() < 2; });  // takes the lock: under it this would hang
    act();
    EXPECT_EQ(looked, 1);
  };
  expect_a_look([&] { EXPECT_TRUE(held->release(1)); });
  expect_a_look([&] { EXPECT_TRUE(semaphore.set_capacity(101)); });
  expect_a_look([&] { EXPECT_TRUE(held->release(50)); });
  expect_a_look([&] { EXPECT_TRUE(semaphore.release(held->split(1)->detach())); });
  expect_a_look([&] { semaphore.close(); });
}
TEST_F(SemaphoreBatch, other_threads_get_the_lock_after_each_batch) {
  std::vector<std::size_t> seen;
  executor.on_wake = [&] {
    const std::size_t waiting = semaphore.waiters().size();  // takes the lock
    if (seen.empty() || seen.back() != waiting) seen.push_back(waiting);
  };
  const int before = executor.wakes;
  held.reset();
  EXPECT_EQ(seen, (std::vector<std::size_t>{100 - kBatch, 100 - 2 * kBatch, 100 - 3 * kBatch, 0}));
  EXPECT_EQ(executor.wakes - before, 100) << "one for each, none forgotten";
}
TEST_F(SemaphoreBatch, no_request_barges_between_two_batches) {
  bool barged = true;
  meanwhile([&] {
    EXPECT_EQ(semaphore.waiting(), 100 - kBatch);
    EXPECT_EQ(semaphore.available(), 100 - static_cast<std::int64_t>(kBatch)) << "free, but not for new requests";
    barged = semaphore.try_acquire().has_value();
  });
  held.reset();
  EXPECT_FALSE(barged);
}
TEST_F(SemaphoreBatch, the_order_holds_when_a_permit_comes_back_between_two_batches) {
  Permit part = std::move(*held->split(40));
  meanwhile([&] { part.release(); });  // another thread's release continues with the line
  held.reset();
  executor.run_ready();
  Log wanted;
  for (int i = 0; i < 100; ++i) wanted.push_back(std::to_string(i));
  EXPECT_EQ(log, wanted);
}
TEST_F(SemaphoreBatch, a_waiter_cancelled_between_two_batches_gets_nothing) {
  meanwhile([&] { scope.cancel(); });
  held.reset();
  EXPECT_EQ(semaphore.waiting(), 0u);
  executor.run_ready();
  EXPECT_EQ(log, Log{});
  EXPECT_EQ(semaphore.available(), 100);
}
TEST_F(SemaphoreBatch, a_capacity_that_shrinks_between_two_batches_is_obeyed) {
  meanwhile([&] { EXPECT_TRUE(semaphore.set_capacity(40)); });
  held.reset();
  executor.run_ready();
  EXPECT_EQ(log.size(), 40u);
  EXPECT_EQ(semaphore.available(), 0);
}
TEST_F(SemaphoreBatch, nothing_is_granted_once_a_close_has_begun) {
  meanwhile([&] { held.reset(); });
  semaphore.close();
  executor.run_ready();
  EXPECT_EQ(failed, 100);
}
TEST_F(SemaphoreBatch, an_impossible_batch_and_the_grants_after_it_need_more_than_one_batch_of_wake_ups) {
  scope.cancel();
  executor.run_ready();
  RootScope another(executor);
  EXPECT_TRUE(held->release(50));
  for (std::size_t i = 0; i < kBatch - 1; ++i) another.spawn(visit("big", 60));
  for (int i = 0; i < 5; ++i) another.spawn(visit("small", 1));
  executor.run_ready();
  EXPECT_TRUE(semaphore.set_capacity(55));
  executor.run_ready();
  EXPECT_EQ(std::ranges::count(log, "big: invalid"), static_cast<std::ptrdiff_t>(kBatch - 1));
  EXPECT_EQ(std::ranges::count(log, "small"), 5);
  another.cancel();
  executor.run_ready();
}
TEST_F(SemaphoreBatch, many_waiters_that_became_impossible_all_fail) {
  for (int i = 0; i < 50; ++i) {
    enter("big", 60);
    enter("small", 1);
  }
  EXPECT_TRUE(semaphore.set_capacity(59));
  executor.run_ready();
  EXPECT_EQ(log, Log(50, "big: invalid"));
  EXPECT_EQ(semaphore.waiting(), 150u);
}

TEST_F(SemaphoreBatch, the_next_waiter_to_fail_may_have_left_when_the_lock_is_taken_again) {
  RootScope bigs(executor);
  for (std::size_t i = 0; i < 2 * kBatch; ++i) bigs.spawn(visit("big", 60));
  executor.run_ready();
  meanwhile([&] { bigs.cancel(); });  // waiters that failed but have not resumed, and the next ones
  EXPECT_TRUE(semaphore.set_capacity(59));
  executor.run_ready();
  EXPECT_EQ(log, Log{});
  EXPECT_TRUE(bigs.idle());
  EXPECT_EQ(semaphore.waiting(), 100u);
}

}  // namespace
}  // namespace stint
