// The semaphore between threads.
#include "semaphore_test_support.hpp"
#include "stint/asio.hpp"

#include <random>
#include <thread>

namespace stint {
namespace {

Task<> reports_thread(Semaphore& semaphore, std::thread::id& resumed_on) {
  const auto permit = co_await semaphore.acquire();
  resumed_on = std::this_thread::get_id();
}
TEST(SemaphoreThreads, a_grant_from_another_thread_resumes_the_waiter_on_its_own) {
  Semaphore semaphore("slots", 1);
  auto held = semaphore.try_acquire();
  Reactor reactor;
  RootScope scope(reactor);
  std::thread::id resumed_on;
  scope.spawn(reports_thread(semaphore, resumed_on));
  std::thread releaser([&] {
    while (semaphore.waiting() == 0) std::this_thread::yield();
    held.reset();
  });
  reactor.run_until([&] { return scope.idle(); });
  releaser.join();
  EXPECT_EQ(resumed_on, std::this_thread::get_id());
}

TEST(SemaphoreThreads, permits_come_home_when_an_executor_dies_with_queued_resumptions) {
  Semaphore semaphore("slots", 2);
  Log log;
  auto held = semaphore.try_acquire(2);
  auto reactor = std::make_unique<Reactor>();
  RootScope scope(*reactor);
  for (int i = 0; i < 3; ++i) scope.spawn(hold(semaphore, log, "x"));
  reactor->run_until([&] { return semaphore.waiting() == 3; });
  std::thread([&] { held.reset(); }).join();  // two are granted and lie in the inbox; one stays parked
  EXPECT_EQ(semaphore.waiting(), 1u);
  reactor.reset();
  EXPECT_EQ(log, Log{});
  EXPECT_EQ(semaphore.waiting(), 0u);
  EXPECT_EQ(semaphore.available(), 2);
}

Task<> counts_grant(Semaphore& semaphore, int& granted) {
  const auto permit = co_await semaphore.acquire();
  ++granted;
}
TEST(SemaphoreThreads, a_release_and_a_cancel_from_another_thread_have_one_outcome) {
  constexpr int kRounds = 4000;
  Semaphore semaphore("slots", 1);
  Reactor reactor;
  int granted = 0;
  for (int round = 0; round < kRounds; ++round) {
    RootScope scope(reactor);
    auto held = semaphore.try_acquire();
    ASSERT_TRUE(held.has_value()) << "lost in round " << round;
    scope.spawn(counts_grant(semaphore, granted));
    std::thread other([&] {
      while (semaphore.waiting() == 0) std::this_thread::yield();
      if (round % 2 == 0) held.reset();
      scope.cancel();
      held.reset();
    });
    reactor.run_until([&] { return scope.idle(); });
    other.join();
    reactor.run_until([&] { return scope.idle(); });  // the cancel may have come after the end: it is still queued
  }
  EXPECT_GT(granted, 0);
  EXPECT_LT(granted, kRounds);
}

TEST(SemaphoreThreads, a_release_that_meets_a_wait_about_to_begin_is_not_lost) {
  constexpr int kRounds = 20'000;
  Semaphore semaphore("slots", 1);
  Reactor reactor;
  std::optional<Permit> held;
  std::atomic<int> begun = 0, released = 0;
  int granted = 0;
  std::thread other([&] {
    for (int round = 1; round <= kRounds; ++round) {
      while (begun < round) {  // spins: the two must meet within some 50 ns
      }
      for (volatile int delay = round % 256; delay > 0; delay = delay - 1) {
      }
      held.reset();
      released = round;
    }
  });
  for (int round = 1; round <= kRounds; ++round) {
    RootScope scope(reactor);
    held = semaphore.try_acquire();
    scope.spawn(counts_grant(semaphore, granted));
    begun = round;
    reactor.run_until([&] { return scope.idle(); });
    while (released < round) {
    }
  }
  other.join();
  EXPECT_EQ(granted, kRounds);
}

struct Stress {
  static constexpr int kCapacity = 5, kThreads = 4, kTasks = 3, kRounds = 100'000;
  Semaphore semaphore{"slots", kCapacity};
  std::atomic<std::int64_t> in_use = 0;
  std::atomic<std::int64_t> granted = 0, timed_out = 0, lost = 0;
};
Task<int> use(Stress& stress, std::uint32_t units, bool timed, TimePoint deadline, int yields) {
  auto permit =
      timed ? co_await stress.semaphore.acquire_until(deadline, units) : co_await stress.semaphore.acquire(units);
  if (!permit) {
    ++stress.timed_out;
    co_return 0;
  }
  struct InUse {
    ~InUse() { count -= units; }
    std::atomic<std::int64_t>& count;
    std::int64_t units;
  };
  STINT_ASSERT((stress.in_use += units) <= Stress::kCapacity);
  const InUse in_use{stress.in_use, units};
  ++stress.granted;
  for (int i = 0; i < yields; ++i) co_await yield();
  co_return 1;
}
Task<int> yields(int count) {
  for (int i = 0; i < count; ++i) co_await yield();
  co_return 0;
}
Task<> stress_task(Stress& stress, Executor& executor, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < Stress::kRounds; ++round) {
    const auto units = static_cast<std::uint32_t>(1 + random() % 3);
    const int busy = static_cast<int>(random() % 3);
    if (random() % 4 == 0) {
      const auto winner = co_await race(use(stress, units, false, {}, busy), yields(static_cast<int>(random() % 32)));
      if (winner.index() == 1) ++stress.lost;
    } else {
      const bool timed = random() % 4 == 0;
      co_await use(stress, units, timed, executor.now() + std::chrono::microseconds(random() % 2000), busy);
    }
  }
}
TEST(SemaphoreThreads, stress_of_grant_cancel_timeout_and_resize_on_four_threads) {
  Stress stress;
  std::atomic<int> running = Stress::kThreads;
  std::vector<std::thread> threads;
  for (int id = 0; id < Stress::kThreads; ++id) {
    threads.emplace_back([&, id] {
      Reactor reactor;
      RootScope scope(reactor);
      for (int i = 0; i < Stress::kTasks; ++i) scope.spawn(stress_task(stress, reactor, id * 1000 + i));
      reactor.run_until([&] { return scope.idle(); });
      --running;
    });
  }
  for (std::uint32_t i = 0; running > 0; ++i) {
    stress.semaphore.set_capacity(3 + i % 3);
    std::this_thread::yield();
  }
  for (auto& thread : threads) thread.join();
  stress.semaphore.set_capacity(Stress::kCapacity);
  EXPECT_EQ(stress.semaphore.available(), Stress::kCapacity);
  EXPECT_EQ(stress.in_use, 0);
  EXPECT_GT(stress.timed_out, 0);
  EXPECT_GT(stress.lost, 0);
  std::printf("  granted %ld, timed out %ld, lost races %ld\n", stress.granted.load(), stress.timed_out.load(),
              stress.lost.load());
}

}  // namespace
}  // namespace stint
