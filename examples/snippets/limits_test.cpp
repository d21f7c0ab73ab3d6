// The code that docs/library.md shows of semaphores, limit sets, pools of objects, queues and rates.
#include "stint/adaptive.hpp"
#include "stint/limit_set.hpp"
#include "stint/object_pool.hpp"
#include "stint/queue.hpp"
#include "stint/rate.hpp"
#include "stint/scope.hpp"
#include "stint/semaphore.hpp"
#include "stint/testing.hpp"

#include <gtest/gtest.h>

namespace stint {
namespace {

using namespace std::chrono_literals;

void run_to_end(Simulator& simulator, Task<> task) {
  RootScope scope(simulator);
  scope.spawn(std::move(task));
  EXPECT_TRUE(simulator.run_until([&] { return scope.idle(); }));
}

// [semaphore]
Task<Result<>> download(Semaphore& slots) {
  STINT_CO_TRY(const Permit permit, co_await slots.acquire());  // waits; fails only if the semaphore is closed
  co_await sleep_for(1s);
  co_return Result<>();
}  // the permit is returned here, however this ends
// [/semaphore]

TEST(Limits, a_permit_is_released_by_its_destructor) {
  Semaphore slots("downloads", 2);
  Simulator simulator;
  RootScope scope(simulator);
  for (int i = 0; i < 5; ++i) scope.spawn(download(slots));
  simulator.advance(500ms);
  EXPECT_EQ(slots.available(), 0);
  EXPECT_EQ(slots.waiting(), 3u);
  scope.cancel();
  simulator.run_ready();
  EXPECT_EQ(slots.available(), 2);
}

// [semaphore-options]
Semaphore make_limit(const Executor& clock) {
  return {"gpu",
          8,
          {.bypass_max = 4,        // at most four small requests may overtake a large head that does not fit
           .track_holders = true,  // list holders with label and age
           .clock = &clock}};
}

Task<Result<>> train(Semaphore& gpu, std::string caller, Deadline deadline) {
  STINT_CO_TRY(Permit permit, co_await gpu.acquire({.units = 4, .priority = 1, .label = caller}, deadline));
  co_await sleep_for(1h);
  co_return permit.release(2);  // two units now, the rest at the end
}
// [/semaphore-options]

TEST(Limits, holders_are_listed) {
  Simulator simulator;
  Semaphore gpu = make_limit(simulator);
  RootScope scope(simulator);
  scope.spawn(train(gpu, "van", Deadline::never()));
  simulator.advance(1min);
  ASSERT_EQ(gpu.holders().size(), 1u);
  EXPECT_EQ(gpu.holders()[0].label, "van");
  EXPECT_EQ(gpu.holders()[0].units, 4u);
  EXPECT_EQ(simulator.now() - gpu.holders()[0].since, 1min);
  simulator.settle();
}

// [resize]
void halve(Semaphore& slots) {
  // Never blocks or revokes a permit: units held above the new capacity are a debt, repaid as permits return.
  if (Result<> done = slots.set_capacity(slots.capacity() / 2); !done) ADD_FAILURE() << done.error().describe();
}
// [/resize]

TEST(Limits, a_resize_makes_a_debt) {
  Semaphore slots("slots", 4);
  auto all = slots.try_acquire(4);
  halve(slots);
  EXPECT_EQ(slots.capacity(), 2u);
  EXPECT_EQ(slots.available(), -2);
  ASSERT_TRUE(all->release(3));
  EXPECT_EQ(slots.available(), 1);
}

// [limit-set]
Task<Result<>> review(LimitSet& needs, std::vector<std::string>& log, std::string caller) {
  STINT_CO_TRY(PermitSet permits, co_await needs.acquire({.label = caller}));  // all of them, or none
  log.push_back(caller + " works");
  co_await sleep_for(1s);
  STINT_CO_CHECK(co_await permits.back_off(10s));  // returns the permits while it waits, and keeps its turn
  log.push_back(caller + " again");
  co_return Result<>();
}
// [/limit-set]

TEST(Limits, a_set_is_all_or_nothing) {
  Semaphore agent("agent:review", 1), account("account:anthropic", 1);
  LimitSet needs{{&agent}, {&account}};
  Simulator simulator;
  RootScope scope(simulator);
  std::vector<std::string> log;
  scope.spawn(review(needs, log, "van"));
  scope.spawn(review(needs, log, "cab"));
  simulator.settle();
  EXPECT_EQ(log, (std::vector<std::string>{"van works", "cab works", "van again", "cab again"}));
}

// [object-pool]
struct Session {
  bool good = true;
};

Task<Result<>> talk(ObjectPool<Session>& sessions) {
  STINT_CO_TRY(auto session, co_await sessions.borrow());
  co_await sleep_for(10ms);
  if (!session->good) session.discard();  // otherwise it returns to the pool
  co_return Result<>();
}
// [/object-pool]

TEST(Limits, objects_are_reused) {
  auto connect = []() -> Task<Result<Session>> { co_return Session(); };
  ObjectPool<Session>::Options options;
  options.max_size = 2;
  ObjectPool<Session> sessions("sessions", connect, options);
  Simulator simulator;
  RootScope scope(simulator);
  for (int i = 0; i < 10; ++i) scope.spawn(talk(sessions));
  simulator.settle();
  EXPECT_EQ(sessions.counts().made, 2u);
  EXPECT_EQ(sessions.counts().reused, 8u);
}

// [queue]
Task<> produce(Queue<int>& queue) {
  for (int i = 0; i < 4; ++i) {
    if (Result<> pushed = co_await queue.push(i); !pushed) co_return;  // waits while the queue is full
  }
  queue.close();
}

Task<> consume(Queue<int>& queue, std::vector<int>& seen) {
  while (Result<int> item = co_await queue.pop()) seen.push_back(*item);  // until the queue is closed and empty
}
// [/queue]

TEST(Limits, a_queue_is_bounded) {
  Queue<int> queue("work", 2);
  Simulator simulator;
  RootScope scope(simulator);
  std::vector<int> seen;
  scope.spawn(produce(queue));
  simulator.settle();
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(queue.try_push(9).error(), Errc::full);
  scope.spawn(consume(queue, seen));
  simulator.settle();
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 3}));
}

// [rate]
Task<Result<>> call_model(RateLimiter& rate) {
  RateAmount estimate;
  estimate.input_tokens = 1000;
  estimate.output_tokens = 500;
  STINT_CO_TRY(RateGrant grant, co_await rate.acquire(estimate));  // waits until the estimate is admitted
  grant.sent();
  co_await sleep_for(2s);
  RateAmount used = estimate;
  used.output_tokens = 80;
  grant.settle(used);  // unused units become available to others
  co_return Result<>();
}
// [/rate]

TEST(Limits, a_rate_is_settled_with_the_actual_use) {
  RateLimits limits;
  limits.tokens_per_minute = 60'000;
  RateLimiter rate("model:opus", limits);
  Simulator simulator;
  auto program = [&]() -> Task<> { EXPECT_TRUE(co_await call_model(rate)); };
  run_to_end(simulator, program());
  EXPECT_EQ(rate.available(RateKind::tokens, simulator.now()), 10'000);
}

// [adaptive]
Task<Result<>> call_upstream(AdaptiveLimit& limit, Executor& clock, bool overloaded) {
  STINT_CO_TRY(AdaptivePermit permit, co_await limit.acquire());
  co_await sleep_for(2s);
  permit.end(overloaded ? LoadSignal::overload : LoadSignal::success, clock.now());
  co_return Result<>();
}
// [/adaptive]

TEST(Limits, an_overload_lowers_the_limit) {
  Semaphore slots("upstream", 20);
  AimdPolicy policy;
  policy.initial = 20;
  AdaptiveLimit limit(slots, policy);
  Simulator simulator;
  auto program = [&]() -> Task<> { EXPECT_TRUE(co_await call_upstream(limit, simulator, true)); };
  run_to_end(simulator, program());
  EXPECT_EQ(limit.limit(), 14u);
}

}  // namespace
}  // namespace stint
