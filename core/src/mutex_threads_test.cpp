// The mutex across threads.
#include "stint/asio.hpp"
#include "stint/mutex.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

#include <random>
#include <thread>

namespace stint {
namespace {

Task<> keeps(Mutex& mutex, std::atomic<bool>& locked, MutexGuard& guard) {
  guard = *co_await mutex.lock();
  locked = true;
  co_await sleep_for(1h);
}
Task<> locks(Mutex& mutex, std::thread::id& resumed_on) {
  const auto guard = co_await mutex.lock();
  resumed_on = std::this_thread::get_id();
}
TEST(MutexThreads, a_waiter_resumes_on_its_own_thread) {
  Mutex mutex("shared");
  std::atomic<bool> locked = false;
  std::thread owner([&] {
    Reactor reactor;
    RootScope scope(reactor);
    MutexGuard guard;
    scope.spawn(keeps(mutex, locked, guard));
    reactor.run_until([&] { return locked.load(); });
    while (mutex.waiting() == 0) std::this_thread::yield();
    guard = MutexGuard();
    scope.cancel();
    EXPECT_EQ(reactor.run(scope).error(), Errc::cancelled);
  });
  while (!locked) std::this_thread::yield();
  Reactor reactor;
  RootScope scope(reactor);
  std::thread::id resumed_on;
  scope.spawn(locks(mutex, resumed_on));
  EXPECT_TRUE(reactor.run(scope));
  owner.join();
  EXPECT_EQ(resumed_on, std::this_thread::get_id());
}
TEST(MutexThreadsDeathTest, a_guard_must_not_be_destroyed_on_another_thread) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        Mutex mutex("shared");
        std::atomic<bool> locked = false;
        MutexGuard guard;
        Reactor reactor;
        RootScope scope(reactor);
        scope.spawn(keeps(mutex, locked, guard));
        reactor.run_until([&] { return locked.load(); });
        std::thread([&] { guard = MutexGuard(); }).join();
      },
      "a guard must be destroyed on its owner's thread");
}
TEST(MutexThreads, a_guard_whose_executor_is_destroyed_may_be_destroyed_on_any_thread) {
  Mutex mutex("shared");
  MutexGuard guard;
  std::thread([&] {
    std::atomic<bool> locked = false;
    auto reactor = std::make_unique<Reactor>();
    RootScope scope(*reactor);
    scope.spawn(keeps(mutex, locked, guard));
    reactor->run_until([&] { return locked.load(); });
    reactor.reset();
  }).join();
  EXPECT_TRUE(mutex.holder()->abandoned);
  guard = MutexGuard();
  EXPECT_FALSE(mutex.holder());
}
Task<> waits(Mutex& mutex, Log& log) {
  const auto guard = co_await mutex.lock();
  log.push_back("locked");
  co_await sleep_for(1h);
}
TEST(MutexThreads, is_released_when_an_executor_is_destroyed_with_an_undelivered_grant) {
  Mutex mutex("shared");
  Log log;
  std::atomic<bool> locked = false, both_wait = false;
  MutexGuard guard;
  auto reactor = std::make_unique<Reactor>();
  RootScope scope(*reactor);
  std::thread owner([&] {
    Reactor own;
    RootScope root(own);
    root.spawn(keeps(mutex, locked, guard));
    own.run_until([&] { return locked.load(); });
    while (!both_wait)
      std::this_thread::yield();  // set by the other thread, since mutex.waiting() would be 2 too early
    guard = MutexGuard();         // now granted to the first of the two, which has not resumed
    root.cancel();
    EXPECT_EQ(own.run(root).error(), Errc::cancelled);
  });
  while (!locked) std::this_thread::yield();
  for (int i = 0; i < 2; ++i) scope.spawn(waits(mutex, log));
  reactor->run_until([&] { return mutex.waiting() == 2; });
  both_wait = true;
  owner.join();
  EXPECT_EQ(mutex.waiting(), 1u);
  reactor.reset();
  EXPECT_EQ(log, Log{});
  EXPECT_EQ(mutex.waiting(), 0u);
  EXPECT_FALSE(mutex.holder());
}

/// Nested locks and a processor with priorities, cancelled and timed, on several threads.
struct MutexStress {
  static constexpr int kThreads = 2, kTasks = 4, kRounds = 1500;
  Mutex mutexes[3] = {Mutex("a"), Mutex("b"), Mutex("c")};
  Semaphore cpu{"cpu", 2};
  std::int64_t inside[3] = {};  // not atomic: the mutexes protect them
  std::atomic<std::int64_t> locked = 0, circles = 0;
};
Task<> locks_nested(MutexStress& stress, std::mt19937_64& random, std::size_t depth) {
  const std::size_t which = random() % 3;
  const auto guard = co_await stress.mutexes[which].lock(static_cast<int>(random() % 8) - 4);
  if (!guard) {
    stress.circles += guard.error() == Errc::conflict;
    co_return;
  }
  ++stress.locked;
  const std::int64_t before = ++stress.inside[which];
  if (depth < 2 && random() % 2 == 0) co_await locks_nested(stress, random, depth + 1);
  AcquireOptions options;
  options.priority = static_cast<int>(random() % 8) - 4;
  {
    const auto permit = co_await stress.cpu.acquire(options);
    if (random() % 4 == 0) co_await yield();
  }
  STINT_ASSERT(stress.inside[which] == before);
}
Task<int> works(MutexStress& stress, std::mt19937_64& random) {
  co_await locks_nested(stress, random, 0);
  co_return 1;
}
Task<> stress_task(MutexStress& stress, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < MutexStress::kRounds; ++round) {
    const std::uint64_t patience = 1 + random() % 200;  // drawn first, since the branches share the generator
    (void)co_await race(works(stress, random), yields(patience));
  }
}
TEST(MutexThreads, stress_of_nested_locks_with_cancels_on_two_threads) {
  MutexStress stress;
  std::vector<std::thread> threads;
  for (std::uint64_t id = 0; id < MutexStress::kThreads; ++id) {
    threads.emplace_back([&, id] {
      Reactor reactor;
      RootScope scope(reactor);
      for (std::uint64_t i = 0; i < MutexStress::kTasks; ++i) scope.spawn(stress_task(stress, id * 10 + i));
      EXPECT_TRUE(reactor.run(scope));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(stress.cpu.available(), 2);
  for (const Mutex& mutex : stress.mutexes) EXPECT_FALSE(mutex.holder());
  EXPECT_GT(stress.locked, 0);
  std::printf("  locked %ld times, %ld circles refused\n", stress.locked.load(), stress.circles.load());
}

}  // namespace
}  // namespace stint
