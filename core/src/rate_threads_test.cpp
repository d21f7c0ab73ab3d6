// The rate limiter across threads: each has its own reactor, all share one line.
#include "stint/asio.hpp"
#include "stint/combinators.hpp"
#include "stint/rate.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace stint {
namespace {

struct Tally {
  std::atomic<int> sent = 0, given_back = 0, timed_out = 0, failed = 0;
};

Task<> call(RateLimiter& limiter, Tally& tally, int number) {
  const Deadline deadline = Deadline::after(Clock::now(), number % 5 == 0 ? 2ms : 1h);
  auto grant = co_await with_deadline(deadline, limiter.acquire({.input_tokens = 1 + number % 7}));
  if (!grant) {
    ++(grant.error() == Errc::timed_out ? tally.timed_out : tally.failed);
    co_return;
  }
  co_await yield();
  if (number % 3 == 0) {
    ++tally.given_back;
    co_return;
  }
  ++tally.sent;
  grant->sent();
  grant->settle({.input_tokens = number % 11});
}

TEST(RateThreads, every_caller_on_every_thread_gets_an_answer) {
  constexpr int kThreads = 3, kCalls = 400;
  // Ten requests per millisecond: the line is never empty, and the test takes about a tenth of a second.
  RateLimiter limiter("account", {.requests_per_minute = 600'000, .tokens_per_minute = 6'000'000, .burst = 5ms});
  Tally tally;
  const TimePoint start = Clock::now();
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&limiter, &tally, id] {
      Reactor reactor;
      RootScope scope(reactor);
      for (int i = 0; i < kCalls; ++i) scope.spawn(call(limiter, tally, i * kThreads + id));
      EXPECT_TRUE(reactor.run(scope));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Duration took = Clock::now() - start;
  EXPECT_EQ(tally.sent + tally.given_back + tally.timed_out, kThreads * kCalls);
  EXPECT_EQ(tally.failed, 0);
  EXPECT_EQ(limiter.waiting(), 0u);
  EXPECT_LE(tally.sent, 50 + took / 100us) << "the burst and what flowed in";
}

TEST(RateThreads, a_change_from_another_thread_wakes_the_head_on_its_own_thread) {
  RateLimiter limiter("account", {.requests_per_minute = 1});
  auto held = limiter.try_acquire({}, Clock::now());
  Reactor reactor;
  RootScope scope(reactor);
  std::thread::id resumed_on;
  const auto waits = [](RateLimiter& on, std::thread::id& where) -> Task<> {
    (void)co_await on.acquire({});
    where = std::this_thread::get_id();
  };
  scope.spawn(waits(limiter, resumed_on));
  std::thread other([&] {
    while (limiter.waiting() == 0) std::this_thread::yield();
    held.reset();
  });
  EXPECT_TRUE(reactor.run(scope));
  other.join();
  EXPECT_EQ(resumed_on, std::this_thread::get_id());
}

}  // namespace
}  // namespace stint
