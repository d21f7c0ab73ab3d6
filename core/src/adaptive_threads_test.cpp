// The adaptive limit across threads: each has its own reactor, all share one limit.
#include "stint/adaptive.hpp"
#include "stint/asio.hpp"
#include "stint/testing.hpp"
#include "test_support.hpp"
#include "threads_test_support.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace stint {
namespace {

Task<> call(AdaptiveLimit& limit, std::atomic<int>& calls, int number) {
  auto permit = co_await limit.acquire();
  co_await yield();
  ++calls;
  if (number % 7 == 0) co_return;  // not a sample
  permit->end(number % 5 == 0 ? LoadSignal::overload : LoadSignal::success, Clock::now());
}

TEST(AdaptiveThreads, the_capacity_equals_the_limit_after_all_calls_ended) {
  constexpr int kThreads = 4, kCalls = 3000;
  Semaphore semaphore("account", 1);
  AdaptiveLimit limit(semaphore, {.min = 1, .max = 16, .initial = 16, .growth_interval = 1us});
  std::atomic<int> calls = 0;
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&limit, &calls, id] {
      Reactor reactor;
      RootScope scope(reactor);
      for (int i = 0; i < kCalls; ++i) scope.spawn(call(limit, calls, i * kThreads + id));
      EXPECT_TRUE(reactor.run(scope));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(calls, kThreads * kCalls);
  EXPECT_EQ(limit.inflight(), 0u);
  EXPECT_EQ(semaphore.capacity(), limit.limit());
  EXPECT_EQ(semaphore.available(), limit.limit());
  EXPECT_GE(limit.limit(), 1u);
  EXPECT_LE(limit.limit(), 16u);
}

Task<> take(AdaptiveLimit& limit, std::vector<AdaptivePermit>& permits) {
  auto permit = co_await limit.acquire();
  permits.push_back(std::move(*permit));
}

// Two calls that both change the limit end concurrently, repeatedly: the capacity must be that of the later one.
TEST(AdaptiveThreads, the_later_of_two_changes_wins) {
  constexpr int kRounds = 10'000;
  Semaphore semaphore("account", 1);
  std::optional<AdaptiveLimit> limit;
  std::vector<AdaptivePermit> permits;
  Simulator sim;
  race_rounds(
      kRounds,
      [&](int round, auto begin, auto end) {
        limit.emplace(semaphore, AimdPolicy{.max = 8, .initial = 4, .growth_interval = 0s});
        RootScope scope(sim);
        for (int i = 0; i < 4; ++i) scope.spawn(take(*limit, permits));
        sim.settle();
        begin();
        permits[1].end(LoadSignal::success, TimePoint());
        end();
        EXPECT_EQ(limit->limit(), 6u);
        EXPECT_EQ(semaphore.capacity(), 6u) << "round " << round;
        permits.clear();
      },
      [&](int) { permits[0].end(LoadSignal::success, TimePoint()); });
}

}  // namespace
}  // namespace stint
