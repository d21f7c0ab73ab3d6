#include "stint/adaptive.hpp"

#include "stint/scope.hpp"
#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace stint {
namespace {

struct AdaptiveTest : testing::Test {
  Semaphore semaphore{"account", 1};
  AdaptiveLimit limit{semaphore, {.min = 1, .max = 8, .initial = 4, .decrease = 0.5, .growth_interval = 1s}};
  Log log;
  Simulator sim{1};
  RootScope scope{sim};
};

Task<> work(AdaptiveLimit& limit, Executor& executor, Log& log, LoadSignal signal, Duration takes) {
  auto permit = co_await limit.acquire();
  log.push_back(permit ? "began" : std::string(permit.error().what()));
  if (!permit) co_return;
  co_await sleep_for(takes);
  permit->end(signal, executor.now());
}

TEST_F(AdaptiveTest, the_capacity_follows_the_limit) {
  EXPECT_EQ(semaphore.capacity(), 4u);
  for (int i = 0; i < 4; ++i) scope.spawn(work(limit, sim, log, LoadSignal::success, 2s));
  sim.settle();
  EXPECT_EQ(semaphore.capacity(), 5u);
  scope.spawn(work(limit, sim, log, LoadSignal::overload, 1s));
  sim.settle();
  EXPECT_EQ(semaphore.capacity(), 2u);
  EXPECT_EQ(semaphore.available(), 2);
}

TEST_F(AdaptiveTest, a_decrease_creates_a_debt_that_held_permits_repay) {
  for (int i = 0; i < 4; ++i) scope.spawn(work(limit, sim, log, LoadSignal::overload, 1s + i * 1s));
  sim.run_ready();
  for (int i = 0; i < 2; ++i) scope.spawn(work(limit, sim, log, LoadSignal::success, 1s));
  sim.advance(1500ms);
  EXPECT_EQ(limit.limit(), 2u);
  EXPECT_EQ(log, Log(4, "began")) << "three still work under a limit of two";
  sim.advance(2s);
  EXPECT_EQ(log, Log(5, "began"));
  sim.settle();
  EXPECT_EQ(log, Log(6, "began"));
}

// Behaviour 115.
TEST_F(AdaptiveTest, a_stopped_call_is_not_a_sample_and_returns_its_permit) {
  for (int i = 0; i < 4; ++i) scope.spawn(work(limit, sim, log, LoadSignal::success, 1h));
  sim.advance(10s);
  EXPECT_EQ(limit.inflight(), 4u);
  scope.cancel();
  sim.settle();
  EXPECT_EQ(limit.inflight(), 0u);
  EXPECT_EQ(limit.limit(), 4u);
  EXPECT_EQ(semaphore.available(), 4);
}

TEST_F(AdaptiveTest, a_waiter_that_is_stopped_was_never_in_flight) {
  for (int i = 0; i < 5; ++i) scope.spawn(work(limit, sim, log, LoadSignal::success, 1h));
  sim.advance(1s);
  EXPECT_EQ(limit.inflight(), 4u);
  scope.cancel();
  sim.settle();
  EXPECT_EQ(limit.inflight(), 0u);
}

TEST_F(AdaptiveTest, a_closed_semaphore_is_closed_here_too) {
  semaphore.close();
  scope.spawn(work(limit, sim, log, LoadSignal::success, 1s));
  sim.settle();
  ASSERT_EQ(log.size(), 1u);
  EXPECT_NE(log.front(), "began");
}

Task<> take(AdaptiveLimit& limit, std::optional<AdaptivePermit>& place) {
  auto permit = co_await limit.acquire();
  place.emplace(std::move(*permit));
}

TEST_F(AdaptiveTest, a_permit_ends_once_and_can_be_moved) {
  std::optional<AdaptivePermit> first, second;
  scope.spawn(take(limit, first));
  scope.spawn(take(limit, second));
  sim.settle();
  EXPECT_EQ(limit.inflight(), 2u);
  *first = std::move(*second);  // the permit it held before ends as ignored
  EXPECT_EQ(limit.inflight(), 1u);
  first->end(LoadSignal::overload, sim.now());
  first->end(LoadSignal::overload, sim.now());
  EXPECT_EQ(limit.inflight(), 0u);
  EXPECT_EQ(limit.limit(), 2u);
}

}  // namespace
}  // namespace stint
