#include "stint/rate.hpp"

#include "stint/combinators.hpp"
#include "stint/scope.hpp"
#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace stint {
namespace {

RateAmount a_request(std::int64_t count) { return {.requests = 1, .input_tokens = count}; }

struct RateTest : testing::Test {
  /// One request a second after a burst of two; 100 tokens a second after a burst of 200.
  RateLimiter limiter{"account", {.requests_per_minute = 60, .tokens_per_minute = 6000, .burst = 2s, .ramp_step = 1s}};
  Log log;
  std::vector<RateGrant> grants;
  Simulator sim{1};
  RootScope scope{sim};

  Task<> call(std::string name, RateAmount amount, Deadline deadline = {}) {
    auto grant = co_await limiter.acquire(amount, deadline);
    log.push_back(name + "@" + std::to_string(sim.now().time_since_epoch() / 1ms) +
                  (grant ? "" : " " + std::string(to_string(grant.error().code()))));
    if (grant) grants.push_back(std::move(*grant));
  }
  void spawn(const std::string& name, RateAmount amount, Deadline deadline = {}) {
    scope.spawn(call(name, amount, deadline));
    sim.run_ready();
  }
};

TEST_F(RateTest, admits_in_the_order_of_arrival_as_the_buckets_fill) {
  spawn("a", a_request(1));
  spawn("b", a_request(1));
  spawn("c", a_request(300));  // waits for a full bucket of tokens: 2 used
  spawn("d", a_request(1));    // would fit, but must not overtake
  EXPECT_EQ(log, (Log{"a@0", "b@0"}));
  EXPECT_EQ(limiter.waiting(), 2u);
  sim.settle();
  EXPECT_EQ(log, (Log{"a@0", "b@0", "c@1000", "d@2010"})) << "c left a debt of tokens";
}

TEST_F(RateTest, try_acquire_never_barges) {
  EXPECT_TRUE(limiter.try_acquire(a_request(1), sim.now()));
  spawn("a", a_request(6000));
  spawn("b", a_request(6000));
  EXPECT_EQ(limiter.waiting(), 1u);
  EXPECT_FALSE(limiter.try_acquire(a_request(0), sim.now()));
  scope.cancel();
  sim.settle();
  EXPECT_FALSE(limiter.try_acquire(a_request(6001), sim.now())) << "never fits";
}

// Behaviour 100.
TEST_F(RateTest, a_cancelled_waiter_consumes_nothing_and_the_next_is_admitted_on_time) {
  spawn("a", a_request(200));
  RootScope other(sim);
  other.spawn(call("b", a_request(200)));
  sim.run_ready();
  spawn("c", a_request(100));
  sim.advance(500ms);
  other.cancel();
  sim.settle();
  EXPECT_EQ(log, (Log{"a@0", "c@1000"})) << "as if b had never been there";
  EXPECT_EQ(limiter.available(RateKind::requests, sim.now()), 1);
  EXPECT_EQ(limiter.available(RateKind::tokens, sim.now()), 0);
}

// Behaviour 100, over many orders: the cancel coincides with the grant.
TEST(Rate, a_cancel_at_the_moment_of_the_grant_returns_it) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    RateLimiter limiter("account", {.requests_per_minute = 60, .burst = 1s});
    Simulator sim(seed);
    RootScope scope(sim), other(sim);
    auto first = limiter.try_acquire({}, sim.now());
    first->sent();
    const auto waits = [](RateLimiter& on) -> Task<> {
      auto grant = co_await on.acquire({});
      co_await sleep_for(1h);  // if it was granted, the stop finds it here, before anything was sent
    };
    const auto cancels = [](Scope& target) -> Task<> {
      co_await sleep_until(TimePoint(1s));
      target.cancel();
    };
    other.spawn(waits(limiter));
    scope.spawn(cancels(other));
    sim.advance(1s);
    EXPECT_TRUE(other.idle());
    EXPECT_EQ(limiter.available(RateKind::requests, sim.now()), 1) << "seed " << seed;
    EXPECT_EQ(limiter.waiting(), 0u);
  }
}

// Behaviour 100.
TEST_F(RateTest, a_waiter_stopped_by_its_deadline_consumes_nothing) {
  const auto with_timeout = [](RateTest& test) -> Task<> {
    const auto grant = co_await with_deadline(Deadline(TimePoint(900ms)), test.limiter.acquire(a_request(100)));
    test.log.push_back(grant ? "granted" : std::string(to_string(grant.error().code())));
  };
  spawn("a", a_request(200));
  spawn("b", a_request(50));  // at the head until 500
  scope.spawn(with_timeout(*this));
  sim.advance(10s);
  EXPECT_EQ(log, (Log{"a@0", "b@500", "timed out"}));
  EXPECT_EQ(limiter.available(RateKind::tokens, sim.now()), 200);
  EXPECT_EQ(limiter.waiting(), 0u);
}

TEST_F(RateTest, a_grant_dropped_before_it_was_sent_returns_everything) {
  spawn("a", a_request(200));
  spawn("b", a_request(200));
  EXPECT_EQ(log, Log{"a@0"});
  grants.clear();
  sim.run_ready();
  EXPECT_EQ(log, (Log{"a@0", "b@0"}));
}

TEST_F(RateTest, a_grant_dropped_after_it_was_sent_stands) {
  spawn("a", a_request(200));
  grants.back().sent();
  grants.clear();
  EXPECT_EQ(limiter.available(RateKind::tokens, sim.now()), 0);
}

TEST_F(RateTest, settling_below_the_estimate_wakes_the_head_early) {
  spawn("a", a_request(200));
  spawn("b", a_request(150));
  sim.advance(100ms);
  grants.back().sent();
  grants.back().settle(a_request(20));
  sim.run_ready();
  EXPECT_EQ(log, (Log{"a@0", "b@100"}));
}

TEST_F(RateTest, settling_above_the_estimate_delays_the_head) {
  spawn("a", a_request(200));
  spawn("b", a_request(100));
  grants.back().settle(a_request(300));
  grants.back().settle(a_request(3000));  // the second does nothing
  sim.settle();
  EXPECT_EQ(log, (Log{"a@0", "b@2000"}));
}

TEST_F(RateTest, a_pause_blocks_all_callers_and_a_ramp_follows) {
  limiter.correct(RateKind::requests, {.limit = 60, .remaining = 60}, sim.now());
  spawn("a", a_request(0));
  limiter.pause_until(TimePoint(10s));
  for (const char* name : {"b", "c", "d"}) spawn(name, a_request(0));
  EXPECT_EQ(limiter.paused_until(), TimePoint(10s));
  sim.settle();
  EXPECT_EQ(log, (Log{"a@0", "b@10000", "c@11000", "d@11000"})) << "one, then two";
}

TEST_F(RateTest, a_longer_pause_applies_to_waiting_callers) {
  limiter.pause_until(TimePoint(1s));
  spawn("a", a_request(0));
  sim.advance(500ms);
  limiter.pause_until(TimePoint(5s));
  sim.settle();
  EXPECT_EQ(log, Log{"a@5000"});
}

TEST_F(RateTest, a_call_that_cannot_be_admitted_before_the_deadline_fails_at_once_with_the_time) {
  spawn("a", a_request(200));
  const auto too_late = [](RateTest& test) -> Task<> {
    const auto grant = co_await test.limiter.acquire(a_request(150), Deadline(TimePoint(1500ms)));
    EXPECT_EQ(grant.error(), Errc::timed_out);
    EXPECT_EQ(grant.error().retry(), Retry::safe) << "a wait that times out means not started";
    EXPECT_EQ(grant.error().retry_after(), 1500ms);
    EXPECT_EQ(grant.error().what(),
              "account admits it in 1500 ms only, after the deadline; it waits for tokens per minute");
    test.log.push_back("failed@" + std::to_string(test.sim.now().time_since_epoch() / 1ms));
  };
  scope.spawn(too_late(*this));
  sim.run_ready();
  EXPECT_EQ(log, (Log{"a@0", "failed@0"}));
  spawn("b", a_request(150), Deadline(TimePoint(1501ms)));
  sim.settle();
  EXPECT_EQ(log.back(), "b@1500");
}

TEST_F(RateTest, a_call_that_cannot_be_admitted_before_the_scopes_deadline_fails_at_once_too) {
  spawn("a", a_request(200));
  const auto beneath = [](RateTest& test) -> Task<> {
    auto inner = test.call("b", a_request(200));
    (void)co_await with_deadline(Deadline(TimePoint(1s)), std::move(inner));
  };
  scope.spawn(beneath(*this));
  sim.run_ready();
  EXPECT_EQ(log, (Log{"a@0", "b@0 timed out"}));
}

TEST_F(RateTest, a_caller_behind_others_times_out_in_line) {
  spawn("a", a_request(200));
  spawn("b", a_request(6000));
  spawn("c", a_request(1), Deadline(TimePoint(700ms)));
  sim.advance(1s);
  EXPECT_EQ(log, (Log{"a@0", "c@700 timed out"}));
  sim.settle();
}

TEST_F(RateTest, an_impossible_call_fails_at_once_even_behind_others) {
  spawn("a", a_request(200));
  spawn("b", a_request(200));
  spawn("c", a_request(6001));
  EXPECT_EQ(log, (Log{"a@0", "c@0 invalid"}));
  sim.settle();
}

TEST_F(RateTest, a_limit_lowered_below_a_waiting_call_fails_the_call) {
  spawn("a", a_request(200));
  spawn("b", a_request(5000));
  limiter.correct(RateKind::tokens, {.limit = 3000}, sim.now());
  sim.run_ready();
  EXPECT_EQ(log, (Log{"a@0", "b@0 invalid"}));
}

TEST_F(RateTest, a_raised_limit_wakes_the_head) {
  limiter.correct(RateKind::tokens, {.limit = 600}, sim.now());
  spawn("a", a_request(20));
  spawn("b", a_request(20));
  sim.advance(100ms);
  limiter.correct(RateKind::tokens, {.limit = 6000}, sim.now());
  sim.settle();
  EXPECT_EQ(log, (Log{"a@0", "b@100"})) << "at the old limit it would have been 2000";
}

TEST_F(RateTest, close_wakes_the_head_and_the_line) {
  spawn("a", a_request(200));
  spawn("b", a_request(200));
  spawn("c", a_request(200));
  limiter.close();
  limiter.close();
  spawn("d", a_request(1));
  sim.run_ready();
  std::sort(log.begin(), log.end());
  EXPECT_EQ(log, (Log{"a@0", "b@0 closed", "c@0 closed", "d@0 closed"}));
  EXPECT_FALSE(limiter.try_acquire(a_request(1), sim.now()));
  grants.front().settle(a_request(1));  // grants can still be settled
}

TEST(Rate, a_destroyed_executor_removes_its_waiters) {
  RateLimiter limiter("account", {.requests_per_minute = 1});
  auto sim = std::make_unique<Simulator>(1);
  RootScope scope(*sim);
  const auto waits = [](RateLimiter& on) -> Task<> { (void)co_await on.acquire({}); };
  limiter.try_acquire({}, sim->now())->sent();
  scope.spawn(waits(limiter));
  scope.spawn(waits(limiter));
  sim->run_ready();
  EXPECT_EQ(limiter.waiting(), 2u);
  sim.reset();
  EXPECT_EQ(limiter.waiting(), 0u);
}

TEST_F(RateTest, a_moved_grant_is_settled_once) {
  spawn("a", a_request(100));
  spawn("b", a_request(50));
  grants[0] = std::move(grants[1]);  // returns the 100 that it held
  EXPECT_EQ(limiter.available(RateKind::tokens, sim.now()), 150);
  EXPECT_EQ(grants[0].estimate(), a_request(50));
}

}  // namespace
}  // namespace stint
