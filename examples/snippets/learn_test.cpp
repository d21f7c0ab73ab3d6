// The code that docs/learn.md shows. Each piece is a test of what the text says about it.
#include "stint/queue.hpp"
#include "stint/rate.hpp"
#include "stint/scope.hpp"
#include "stint/semaphore.hpp"
#include "stint/testing.hpp"

#include <gtest/gtest.h>

#include <atomic>

namespace stint {
namespace {

using namespace std::chrono_literals;
using Log = std::vector<std::string>;

// [garage]
Task<Result<>> park(Semaphore& garage, Log& log, std::string car) {
  STINT_CO_TRY(const Permit space, co_await garage.acquire());  // waits in line if none is free
  log.push_back(car + " in");
  co_await sleep_for(1h);
  log.push_back(car + " out");
  co_return Result<>();
}  // the space is free again

TEST(Learn, a_garage_with_two_spaces_and_three_cars) {
  Semaphore garage("garage", 2);
  Simulator simulator(0, Simulator::Order::fifo);
  RootScope scope(simulator);
  Log log;
  for (const char* const car : {"van", "cab", "jeep"}) scope.spawn(park(garage, log, car));
  simulator.advance(30min);
  EXPECT_EQ(log, (Log{"van in", "cab in"}));
  simulator.settle();
  EXPECT_EQ(log, (Log{"van in", "cab in", "van out", "cab out", "jeep in", "jeep out"}));
}
// [/garage]

// [counter]
struct Statistics {
  std::atomic<int> requests = 0;  // counting needs no waiting, so no semaphore
};
// [/counter]

TEST(Learn, a_counter_needs_no_semaphore) {
  Statistics statistics;
  ++statistics.requests;
  EXPECT_EQ(statistics.requests, 1);
}

// [too-many]
TEST(Learn, a_bounded_queue_refuses_where_a_semaphore_waits) {
  Queue<int> queue("requests", 2);
  EXPECT_TRUE(queue.try_push(1));
  EXPECT_TRUE(queue.try_push(2));
  EXPECT_EQ(queue.try_push(3).error(), Errc::full);  // refused at once: the caller can try later, or elsewhere
}
// [/too-many]

// [rate]
Task<Result<>> quick_call(Semaphore& one_at_a_time, int& calls) {
  STINT_CO_TRY(const Permit permit, co_await one_at_a_time.acquire());
  co_await sleep_for(10ms);
  ++calls;
  co_return Result<>();
}

TEST(Learn, one_at_a_time_may_still_be_a_hundred_a_second) {
  Semaphore one_at_a_time("calls", 1);
  Simulator simulator;
  RootScope scope(simulator);
  int calls = 0;
  for (int i = 0; i < 1000; ++i) scope.spawn(quick_call(one_at_a_time, calls));
  simulator.advance(1s);
  EXPECT_EQ(calls, 100);
  scope.cancel();
  simulator.run_ready();
}

TEST(Learn, a_rate_limiter_counts_per_minute) {
  RateLimits limits;
  limits.requests_per_minute = 60;
  limits.burst = 1s;  // at most one request accumulates
  RateLimiter rate("model", limits);
  Simulator simulator;
  RootScope scope(simulator);
  int calls = 0;
  auto call = [&]() -> Task<Result<>> {
    STINT_CO_TRY(RateGrant grant, co_await rate.acquire(RateAmount()));
    grant.sent();
    ++calls;
    co_return Result<>();
  };
  for (int i = 0; i < 100; ++i) scope.spawn(call());
  simulator.advance(10s);
  EXPECT_EQ(calls, 11) << "the accumulated one, and one per second";
  scope.cancel();
  simulator.run_ready();
}
// [/rate]

// [no-owner]
TEST(Learn, a_semaphore_of_one_can_be_released_by_any_caller) {
  Semaphore lock("lock", 1);
  std::uint32_t units = lock.try_acquire()->detach();  // the van is inside, and holds only a count
  EXPECT_TRUE(lock.release(1));                        // the cab, which holds nothing, "unlocks"
  EXPECT_TRUE(lock.try_acquire()) << "and another car enters while the van is still inside";
  EXPECT_EQ(units, 1u);
}
// [/no-owner]

// [barging]
TEST(Learn, try_acquire_does_not_overtake_waiters) {
  Semaphore garage("garage", 1);
  Simulator simulator;
  RootScope scope(simulator);
  Log log;
  auto first = garage.try_acquire();
  scope.spawn(park(garage, log, "van"));
  simulator.run_ready();  // the van waits
  first.reset();          // the space belongs to the van, though it has not resumed yet
  EXPECT_FALSE(garage.try_acquire()) << "the cab can not barge";
  simulator.settle();
}
// [/barging]

// [head-of-line]
Task<Result<>> park_large(Semaphore& garage, Log& log, std::string caller, std::uint32_t spaces) {
  STINT_CO_TRY(const Permit permit, co_await garage.acquire(spaces));
  log.push_back(caller);
  co_await sleep_for(1h);
  co_return Result<>();
}

TEST(Learn, a_large_request_is_not_starved_by_small_ones) {
  Semaphore garage("garage", 2);
  Simulator simulator(0, Simulator::Order::fifo);
  RootScope scope(simulator);
  Log log;
  scope.spawn(park_large(garage, log, "van", 1));
  scope.spawn(park_large(garage, log, "truck", 2));
  scope.spawn(park_large(garage, log, "cab", 1));
  simulator.run_ready();
  EXPECT_EQ(log, (Log{"van"})) << "one space is free and the cab would fit, but the truck was first";
  simulator.settle();
  EXPECT_EQ(log, (Log{"van", "truck", "cab"}));
}
// [/head-of-line]

// [bypass]
TEST(Learn, a_bounded_number_may_pass_a_large_head) {
  Semaphore garage("garage", 2, {.bypass_max = 1});
  Simulator simulator(0, Simulator::Order::fifo);
  RootScope scope(simulator);
  Log log;
  scope.spawn(park_large(garage, log, "van", 1));
  scope.spawn(park_large(garage, log, "truck", 2));
  scope.spawn(park_large(garage, log, "cab", 1));
  scope.spawn(park_large(garage, log, "jeep", 1));
  simulator.settle();
  EXPECT_EQ(log, (Log{"van", "cab", "truck", "jeep"})) << "the cab passed, the jeep did not: bypass_max is 1";
}
// [/bypass]

// [followers]
TEST(Learn, a_cancelled_head_wakes_the_waiters_it_blocked) {
  Semaphore garage("garage", 2);
  Simulator simulator(0, Simulator::Order::fifo);
  RootScope scope(simulator), truck(simulator);
  Log log;
  scope.spawn(park_large(garage, log, "van", 1));
  truck.spawn(park_large(garage, log, "truck", 2));
  simulator.run_ready();
  scope.spawn(park_large(garage, log, "cab", 1));
  simulator.run_ready();
  truck.cancel();
  simulator.run_ready();
  EXPECT_EQ(log, (Log{"van", "cab"})) << "at once, not when the next car leaves";
  simulator.settle();
}
// [/followers]

// [debt]
TEST(Learn, shrinking_the_garage_revokes_no_permit) {
  Semaphore garage("garage", 4);
  auto one = garage.try_acquire(), two = garage.try_acquire(2);  // three are inside
  ASSERT_TRUE(garage.set_capacity(1));
  EXPECT_EQ(garage.available(), -2) << "a debt of two";
  one.reset();
  EXPECT_FALSE(garage.try_acquire()) << "a returned permit repays the debt first";
  two.reset();
  EXPECT_EQ(garage.available(), 1);
}
// [/debt]

// [select]
Task<std::string> wait_for_space(Semaphore& garage, CancelToken& called_home) {
  auto first = co_await select(garage.acquire(), cancelled(called_home), sleep_for(5min));
  switch (first.index()) {
    case 0: co_return "parked";
    case 1: co_return "called home";
    default: co_return "gave up";
  }
}
// [/select]

TEST(Learn, select_waits_for_whichever_comes_first) {
  Semaphore garage("garage", 1);
  auto full = garage.try_acquire();
  Simulator simulator;
  CancelToken called_home(simulator);
  RootScope scope(simulator);
  std::string end;
  auto program = [&]() -> Task<> { end = co_await wait_for_space(garage, called_home); };
  scope.spawn(program());
  simulator.advance(4min);
  EXPECT_EQ(end, "");
  simulator.advance(1min);
  EXPECT_EQ(end, "gave up");
  EXPECT_EQ(garage.waiting(), 0u) << "and it has left the line";

  scope.spawn(program());
  simulator.run_ready();
  called_home.cancel(Reason::user);
  simulator.run_ready();
  EXPECT_EQ(end, "called home");
}

// [stop-waiting]
struct Bill {
  int seconds = 0;
};
Task<> generate(Bill& bill) {
  while (true) {
    co_await sleep_for(1s);
    ++bill.seconds;  // every second is billed
  }
}

/// A timeout as it is often written: the work runs elsewhere, and only the waiting ends.
Task<> wait_ten_seconds(Scope& background, Bill& bill) {
  background.spawn(generate(bill));
  co_await sleep_for(10s);  // "timed out", but the work was not stopped
}
// [/stop-waiting]

// [stop-work]
Task<> work_ten_seconds(Bill& bill) {
  Result<> end = co_await with_timeout(10s, generate(bill));
  EXPECT_EQ(end.error(), Errc::timed_out);  // and the work has stopped
}
// [/stop-work]

TEST(Learn, a_timeout_must_stop_the_work_and_not_just_the_waiting) {
  Simulator simulator;
  RootScope scope(simulator), background(simulator);
  Bill naive, ours;
  scope.spawn(wait_ten_seconds(background, naive));
  scope.spawn(work_ten_seconds(ours));
  simulator.advance(1h);
  EXPECT_EQ(naive.seconds, 3600);
  EXPECT_LE(ours.seconds, 10);
  background.cancel();
  simulator.run_ready();
}

}  // namespace
}  // namespace stint
