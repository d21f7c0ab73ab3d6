// The tests of exercise 01, in the order of its steps. Angle brackets: the build decides whether your
// header or the solution is included.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <semaphore.hpp>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

/// Waits for a condition that another thread makes true; false after five seconds.
bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + 5s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// A thread that blocks forever can't be stopped: names the test and ends the program.
class Watchdog {
 public:
  explicit Watchdog(std::chrono::seconds most = 20s) : thread_([this, most] { watch(most); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    ended_.notify_one();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch(std::chrono::seconds most) {
    std::unique_lock lock(mutex_);
    if (ended_.wait_for(lock, most, [this] { return done_; })) return;
    std::cerr << "A thread is still blocked: a unit was lost, or handed to a waiter that had left. The other tests "
                 "were not run.\n";
    std::_Exit(1);
  }
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;
  std::thread thread_;
};

TEST(Step1Count, units_are_counted_down_and_up) {
  CountingSemaphore semaphore(2);
  EXPECT_EQ(semaphore.available(), 2);
  EXPECT_TRUE(semaphore.try_acquire());
  EXPECT_EQ(semaphore.available(), 1);
  EXPECT_TRUE(semaphore.try_acquire());
  EXPECT_FALSE(semaphore.try_acquire()) << "there were only two";
  EXPECT_TRUE(semaphore.release());
  EXPECT_EQ(semaphore.available(), 1);
}

TEST(Step1Count, a_unit_that_was_not_taken_cannot_be_released) {
  CountingSemaphore semaphore(1);
  EXPECT_FALSE(semaphore.release());
  EXPECT_EQ(semaphore.available(), 1) << "a semaphore that grows by a bug no longer limits anything";
}

TEST(Step2Wait, acquire_waits_for_the_next_release) {
  const Watchdog watchdog;
  CountingSemaphore semaphore(1);
  ASSERT_TRUE(semaphore.try_acquire());
  std::atomic<bool> inside = false;
  std::thread waiter([&] {
    semaphore.acquire();
    inside = true;
  });
  EXPECT_TRUE(eventually([&] { return semaphore.waiting() == 1; })) << "no thread waits";
  EXPECT_FALSE(inside);
  semaphore.release();
  EXPECT_TRUE(eventually([&] { return inside.load(); }));
  EXPECT_EQ(semaphore.waiting(), 0);
  EXPECT_EQ(semaphore.available(), 0) << "the unit went to the waiter";
  waiter.join();
}

TEST(Step3Order, first_come_first_served) {
  const Watchdog watchdog;
  constexpr int kWaiters = 6;
  CountingSemaphore semaphore(1);
  ASSERT_TRUE(semaphore.try_acquire());
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::thread> waiters;
  const auto entered = [&] {
    const std::lock_guard lock(mutex);
    return order.size();
  };
  bool all_wait = true;
  for (int i = 0; i < kWaiters; ++i) {
    waiters.emplace_back([&, i] {
      semaphore.acquire();
      const std::lock_guard lock(mutex);
      order.push_back(i);
    });
    all_wait = all_wait && eventually([&] { return semaphore.waiting() == i + 1; });
    if (!all_wait) break;
  }
  EXPECT_TRUE(all_wait) << "acquire must wait if no unit is free";
  for (std::size_t i = 1; all_wait && i <= kWaiters; ++i) {
    semaphore.release();
    EXPECT_TRUE(eventually([&] { return entered() == i; }));
  }
  for (std::thread& waiter : waiters) waiter.join();
  if (all_wait) EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

TEST(Step4NoBarging, try_acquire_does_not_overtake_waiters) {
  const Watchdog watchdog;
  CountingSemaphore semaphore(1);
  for (int round = 0; round < 200; ++round) {
    ASSERT_TRUE(semaphore.try_acquire());
    std::thread waiter([&] { semaphore.acquire(); });
    const bool waits = eventually([&] { return semaphore.waiting() == 1; });
    semaphore.release();
    const bool barged = semaphore.try_acquire();  // the unit belongs to the waiter, even if it has not woken up yet
    waiter.join();
    ASSERT_TRUE(waits);
    ASSERT_FALSE(barged) << "round " << round;
    semaphore.release();
  }
}

TEST(Step5TimeOut, a_wait_that_times_out_has_no_effect) {
  const Watchdog watchdog;
  CountingSemaphore semaphore(1);
  ASSERT_TRUE(semaphore.try_acquire());
  EXPECT_FALSE(semaphore.acquire_for(5ms));
  EXPECT_EQ(semaphore.waiting(), 0);
  EXPECT_TRUE(semaphore.release());
  EXPECT_EQ(semaphore.available(), 1) << "the unit was handed to a waiter that had left";
  EXPECT_TRUE(semaphore.acquire_for(0ms)) << "a free unit needs no time";
}

TEST(Step5TimeOut, a_unit_handed_over_at_the_timeout_is_not_lost) {
  const Watchdog watchdog;
  CountingSemaphore semaphore(1);
  for (int round = 0; round < 300; ++round) {
    ASSERT_TRUE(semaphore.try_acquire()) << "a unit is missing in round " << round;
    bool granted = false;
    std::thread waiter([&] { granted = semaphore.acquire_for(1ms); });
    const auto meet = std::chrono::steady_clock::now() + 1ms + std::chrono::microseconds(round % 60);
    while (std::chrono::steady_clock::now() < meet) {
    }
    semaphore.release();
    waiter.join();
    if (granted) semaphore.release();
    ASSERT_EQ(semaphore.available(), 1) << "round " << round << (granted ? ", granted" : ", timed out");
  }
}

TEST(Step6Hold, never_more_holders_than_the_capacity_and_no_unit_is_lost) {
  const Watchdog watchdog;
  constexpr int kThreads = 8, kRounds = 2000, kCapacity = 3;
  CountingSemaphore semaphore(kCapacity);
  std::atomic<int> inside = 0, most = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        if (round % 3 == i % 3) {
          if (!semaphore.acquire_for(std::chrono::milliseconds(round % 2))) continue;
        } else {
          semaphore.acquire();
        }
        const int now = ++inside;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        --inside;
        semaphore.release();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most.load(), kCapacity);
  EXPECT_EQ(semaphore.available(), kCapacity);
  EXPECT_EQ(semaphore.waiting(), 0);
}

}  // namespace
