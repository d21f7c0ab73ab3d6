// Several limits at once.
#include "stint/limit_set.hpp"

#include "stint/asio.hpp"
#include "stint/combinators.hpp"
#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

#include <random>
#include <thread>

namespace stint {
namespace {

LimitSetOptions until(TimePoint when) {
  LimitSetOptions options;
  options.deadline = Deadline(when);
  return options;
}
LimitSetOptions with_priority(int priority) {
  LimitSetOptions options;
  options.priority = priority;
  return options;
}

struct LimitSetTest : testing::Test {
  /// Starts a chain in its own scope and runs until nothing is ready.
  Scope& start(Task<> task) {
    scopes.push_back(std::make_unique<RootScope>(sim));
    scopes.back()->spawn(std::move(task));
    sim.run_ready();
    return *scopes.back();
  }
  /// Acquires the set, logs it, and keeps it for `keep`.
  Task<> takes(LimitSet set, std::string caller, Duration keep = 1h, LimitSetOptions options = LimitSetOptions()) {
    auto permits = co_await set.acquire(options);
    log.push_back(caller + (permits ? "+" : " " + std::string(to_string(permits.error().code()))));
    if (permits) co_await sleep_for(keep);
  }
  /// Acquires the set, backs off after `work`, and logs when it is reacquired.
  Task<> backs_off(LimitSet set, std::string caller, Duration work, Duration pause) {
    auto permits = co_await set.acquire();
    log.push_back(caller + "+");
    co_await sleep_for(work);
    const auto back = co_await permits->back_off(pause);
    log.push_back(caller + (back ? " back" : " lost"));
    co_await sleep_for(1s);
  }
  std::string free() const {
    return std::to_string(a.available()) + std::to_string(b.available()) + std::to_string(c.available());
  }
  void TearDown() override {
    for (auto& scope : scopes) scope->cancel();
    sim.run_ready();
    EXPECT_EQ(free(), "213") << "everything came home";
  }

  Log log;
  Semaphore a{"a", 2}, b{"b", 1}, c{"c", 3};
  std::vector<std::unique_ptr<RootScope>> scopes;
  Simulator sim{1};  // last member: destroyed first, with every frame
};

TEST_F(LimitSetTest, acquires_all_and_returns_all) {
  auto set = LimitSet({{&a, 1}, {&b, 1}, {&c, 2}}).try_acquire();
  ASSERT_TRUE(set);
  EXPECT_EQ(free(), "101");
  EXPECT_EQ(set->units(c), 2u);
  PermitSet moved = std::move(*set);
  EXPECT_TRUE(set->empty());  // NOLINT: what is left of a set is empty
  moved.release();
  EXPECT_EQ(free(), "213");
  EXPECT_EQ(moved.units(c), 0u);
}
TEST_F(LimitSetTest, acquires_in_one_global_order_and_merges_duplicates) {
  const LimitSet set({{&c, 1}, {&a, 1}, {&c, 2}, {&b, 1}});
  ASSERT_EQ(set.limits().size(), 3u);
  EXPECT_EQ(set.limits()[0].semaphore, &a);
  EXPECT_EQ(set.limits()[1].semaphore, &b);
  EXPECT_EQ(set.limits()[2].semaphore, &c);
  EXPECT_EQ(set.limits()[2].units, 3u);
  Semaphore same("a", 1);
  EXPECT_EQ(LimitSet({{&a, 1}, {&same, 1}}).limits()[0].semaphore,
            LimitSet({{&same, 1}, {&a, 1}}).limits()[0].semaphore);
}
TEST_F(LimitSetTest, an_empty_set_is_granted_at_once) {
  start(takes(LimitSet({}), "nothing", 0s));
  EXPECT_EQ(log, Log{"nothing+"});
}
TEST_F(LimitSetTest, an_impossible_set_fails_before_anything_is_taken) {
  const auto held = b.try_acquire();
  start(takes(LimitSet({{&a, 1}, {&b, 1}, {&c, 4}}), "four of three"));
  start(takes(LimitSet({{&a, 2}, {&b, 1}, {&a, 1}}), "three of two by two"));
  start(takes(LimitSet({{&a, 1}, {&b, 0}}), "none"));
  start(takes(LimitSet({{&a, 1}, {&b, 1}}), "priority", 1h, with_priority(4)));
  start(takes(LimitSet({{&a, Semaphore::kCapacityMax}, {&b, 1}, {&a, 2}}), "overflow"));
  EXPECT_EQ(log, (Log{"four of three invalid", "three of two by two invalid", "none invalid", "priority invalid",
                      "overflow invalid"}));
  EXPECT_EQ(free(), "203");
}
TEST_F(LimitSetTest, waits_for_the_last_and_holds_what_it_has) {
  auto held = c.try_acquire(3);
  start(takes(LimitSet({{&c, 1}, {&b, 1}}), "x"));
  EXPECT_EQ(log, Log{});
  EXPECT_EQ(free(), "200");
  held.reset();
  sim.run_ready();
  EXPECT_EQ(log, Log{"x+"});
  EXPECT_EQ(free(), "202");
}
TEST_F(LimitSetTest, try_acquire_is_all_or_nothing_and_never_barges) {
  auto held = b.try_acquire();
  EXPECT_FALSE(LimitSet({{&a, 1}, {&b, 1}}).try_acquire());
  EXPECT_EQ(free(), "203");
  held.reset();
  const auto most = a.try_acquire();
  start(takes(LimitSet({{&a, 2}}), "two"));
  EXPECT_FALSE(LimitSet({{&a, 1}, {&b, 1}}).try_acquire()) << "past a waiter";
}
TEST_F(LimitSetTest, waiters_are_listed_with_their_label_at_each_limit) {
  const auto held = b.try_acquire();
  LimitSetOptions options;
  options.label = "review 42";
  options.priority = 2;
  start(takes(LimitSet({{&a, 1}, {&b, 1}}), "x", 1h, options));
  ASSERT_EQ(b.waiters().size(), 1u);
  EXPECT_EQ(b.waiters()[0].label, "review 42");
  EXPECT_EQ(b.waiters()[0].priority, 2);
}

// ---- The way out of the middle -------------------------------------------------------------------------------------

TEST_F(LimitSetTest, a_cancel_in_the_middle_returns_everything_and_unblocks_others) {
  const auto held = b.try_acquire();
  Scope& first = start(takes(LimitSet({{&a, 2}, {&b, 1}}), "first"));
  start(takes(LimitSet({{&a, 1}}), "second"));
  EXPECT_EQ(free(), "003");
  first.cancel();
  sim.run_ready();
  EXPECT_EQ(log, Log{"second+"});
  EXPECT_EQ(free(), "103");
}
TEST_F(LimitSetTest, a_deadline_in_the_middle_returns_everything) {
  const auto held = b.try_acquire();
  start(takes(LimitSet({{&a, 2}, {&b, 1}}), "x", 1h, until(TimePoint(2s))));
  sim.advance(1999ms);
  EXPECT_EQ(free(), "003");
  sim.advance(1ms);
  EXPECT_EQ(log, Log{"x timed out"});
  EXPECT_EQ(free(), "203");
}
TEST_F(LimitSetTest, free_limits_are_granted_after_the_deadline) {
  sim.advance(1h);
  start(takes(LimitSet({{&a, 2}, {&b, 1}}), "x", 1h, until(TimePoint(2s))));
  EXPECT_EQ(log, Log{"x+"});
}
TEST_F(LimitSetTest, a_close_or_a_resize_in_the_middle_returns_everything) {
  const auto held = c.try_acquire(3);
  start(takes(LimitSet({{&a, 1}, {&c, 3}}), "x"));
  ASSERT_TRUE(c.set_capacity(2));
  sim.run_ready();
  EXPECT_EQ(log, Log{"x invalid"});
  EXPECT_EQ(a.available(), 2);
  Semaphore d("d", 1);
  auto last = d.try_acquire();
  start(takes(LimitSet({{&a, 1}, {&d, 1}}), "y"));
  d.close();
  sim.run_ready();
  EXPECT_EQ(log.back(), "y closed");
  EXPECT_EQ(a.available(), 2);
  const auto one = a.try_acquire();
  start(takes(LimitSet({{&a, 2}, {&d, 1}}), "z"));
  EXPECT_EQ(log.back(), "z closed") << "at once, not in the line of a";
  ASSERT_TRUE(c.set_capacity(3));
}
TEST_F(LimitSetTest, all_permits_are_returned_when_an_executor_is_destroyed) {
  auto held = b.try_acquire();
  std::optional<Simulator> mortal(1);
  RootScope scope(*mortal);
  scope.spawn(takes(LimitSet({{&a, 1}}), "holds"));
  scope.spawn(takes(LimitSet({{&a, 1}, {&b, 1}}), "granted"));
  scope.spawn(takes(LimitSet({{&b, 1}, {&c, 1}}), "waits"));
  mortal->run_ready();
  held.reset();  // granted to one of them, which has not resumed yet
  mortal.reset();
  EXPECT_EQ(log, Log{"holds+"});
  EXPECT_EQ(b.waiting(), 0u);
}

// ---- Back-off ------------------------------------------------------------------------------------------------------

TEST_F(LimitSetTest, back_off_returns_the_permits_and_keeps_the_turn) {
  start(backs_off(LimitSet({{&b, 1}, {&a, 2}}), "x", 1s, 10s));
  start(takes(LimitSet({{&b, 1}}), "y", 20s));
  start(takes(LimitSet({{&b, 1}}), "z", 1s));
  sim.advance(2s);
  EXPECT_EQ(log, (Log{"x+", "y+"})) << "x sleeps, y has its place";
  EXPECT_EQ(a.available(), 2);
  sim.advance(3s);
  start(takes(LimitSet({{&b, 1}}), "w", 1s));
  sim.advance(10s);
  EXPECT_EQ(log, (Log{"x+", "y+"})) << "x is awake and waits for y";
  sim.advance(1min);
  EXPECT_EQ(log, (Log{"x+", "y+", "x back", "z+", "w+"})) << "x goes before later requests";
}
TEST_F(LimitSetTest, returning_waiters_go_in_order_of_first_arrival) {
  start(backs_off(LimitSet({{&a, 1}}), "first", 2s, 10s));
  start(backs_off(LimitSet({{&a, 1}}), "second", 1s, 5s));
  start(takes(LimitSet({{&a, 2}}), "big", 1min));
  sim.advance(30s);
  EXPECT_EQ(log, (Log{"first+", "second+", "big+"}));
  EXPECT_EQ(a.waiting(), 2u) << "second came back first";
  sim.advance(32s);
  EXPECT_EQ(log, (Log{"first+", "second+", "big+", "first back", "second back"}));
}
TEST_F(LimitSetTest, a_higher_priority_goes_before_a_returning_waiter) {
  start(backs_off(LimitSet({{&b, 1}}), "x", 1s, 5s));
  start(takes(LimitSet({{&b, 1}}), "y", 20s));
  sim.advance(10s);
  start(takes(LimitSet({{&b, 1}}), "high", 1s, with_priority(1)));
  sim.advance(1min);
  EXPECT_EQ(log, (Log{"x+", "y+", "high+", "x back"}));
}
TEST_F(LimitSetTest, new_requests_are_not_starved_by_returning_waiters) {
  int returns = 0;
  const auto returns_often = [](Semaphore& semaphore, int& count) -> Task<> {
    auto permits = co_await LimitSet({{&semaphore, 1}}).acquire();
    while (true) {
      co_await sleep_for(1ms);
      const auto back = co_await permits->back_off(1ms);
      ++count;
    }
  };
  for (int i = 0; i < 20; ++i) start(returns_often(b, returns));
  sim.advance(1s);  // each was granted once
  int before = returns;
  start(takes(LimitSet({{&b, 1}}), "new", 0s));
  EXPECT_TRUE(sim.run_until([&] { return !log.empty(); }));
  EXPECT_LE(returns - before, 16 + 1);
  EXPECT_GT(returns - before, 10) << "there were enough to starve it";
}
TEST_F(LimitSetTest, a_cancel_during_a_back_off_or_reacquisition_leaves_nothing) {
  Scope& sleeping = start(backs_off(LimitSet({{&a, 1}, {&b, 1}}), "x", 1s, 1h));
  sim.advance(2s);
  sleeping.cancel();
  sim.run_ready();
  EXPECT_EQ(free(), "213");
  Scope& returning = start(backs_off(LimitSet({{&a, 1}, {&b, 1}}), "y", 1s, 1s));
  start(takes(LimitSet({{&b, 1}}), "z"));
  sim.advance(5s);
  EXPECT_EQ(a.available(), 1) << "y has a again and waits for b";
  returning.cancel();
  sim.run_ready();
  EXPECT_EQ(a.available(), 2);
}
TEST_F(LimitSetTest, a_back_off_that_would_outlast_its_deadline_fails_at_once) {
  const auto too_long = [](Semaphore& semaphore, Log& seen) -> Task<> {
    auto permits = co_await LimitSet({{&semaphore, 1}}).acquire();
    const auto back = co_await permits->back_off(1min, Deadline(TimePoint(30s)));
    seen.push_back(std::string(back.error().what()));
    EXPECT_TRUE(permits->empty());
  };
  start(too_long(b, log));
  EXPECT_EQ(log, Log{"a back-off of 60000 ms would outlast the deadline"});
  EXPECT_EQ(sim.now(), TimePoint());
}
TEST_F(LimitSetTest, a_deadline_during_reacquisition_leaves_the_set_empty) {
  const auto late = [](LimitSet set, Log& seen) -> Task<> {
    auto permits = co_await set.acquire();
    const auto back = co_await permits->back_off(1s, Deadline(TimePoint(3s)));
    seen.push_back(std::string(to_string(back.error().code())));
    EXPECT_TRUE(permits->empty());
  };
  start(late(LimitSet({{&a, 1}, {&b, 1}}), log));
  start(takes(LimitSet({{&b, 1}}), "y"));
  sim.advance(5s);
  EXPECT_EQ(log, (Log{"y+", "timed out"}));
  EXPECT_EQ(a.available(), 2);
}

// ---- Threads -------------------------------------------------------------------------------------------------------

struct LimitSetStress {
  Semaphore a{"a", 2}, b{"b", 1}, c{"c", 3};
  std::atomic<std::int64_t> used[3] = {};
};
struct StressUse {
  StressUse(LimitSetStress& stress, std::size_t which, std::int64_t units) : used(stress.used[which]), count(units) {
    constexpr std::int64_t kCapacity[] = {2, 1, 3};
    STINT_ASSERT((used += count) <= kCapacity[which]);
  }
  ~StressUse() { used -= count; }
  std::atomic<std::int64_t>& used;
  std::int64_t count;
};
Task<int> uses(LimitSetStress& stress, const LimitSet& set, std::uint64_t pauses) {
  auto permits = co_await set.acquire();
  for (int round = 0; round < 2; ++round) {
    {
      const StressUse in_a(stress, 0, permits->units(stress.a));
      const StressUse in_b(stress, 1, permits->units(stress.b));
      const StressUse in_c(stress, 2, permits->units(stress.c));
      while (pauses-- > 0) co_await yield();
    }
    pauses = 1;
    if (round == 0) STINT_ASSERT((co_await permits->back_off(Duration(0))).has_value());
  }
  co_return 1;
}
Task<> stress_task(LimitSetStress& stress, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const LimitSet sets[] = {LimitSet({{&stress.a, 1}, {&stress.b, 1}}), LimitSet({{&stress.b, 1}, {&stress.a, 2}}),
                           LimitSet({{&stress.c, 2}, {&stress.a, 1}}), LimitSet({{&stress.b, 1}, {&stress.c, 3}})};
  for (int round = 0; round < 2000; ++round) {
    const LimitSet& set = sets[random() % 4];
    (void)co_await race(uses(stress, set, random() % 3), yields(1 + random() % 64));
  }
}
TEST(LimitSetThreads, stress_of_overlapping_sets_with_cancels_on_two_threads) {
  LimitSetStress stress;
  std::vector<std::thread> threads;
  for (std::uint64_t id = 0; id < 2; ++id) {
    threads.emplace_back([&, id] {
      Reactor reactor;
      RootScope scope(reactor);
      for (std::uint64_t i = 0; i < 4; ++i) scope.spawn(stress_task(stress, id * 10 + i));
      EXPECT_TRUE(reactor.run(scope));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(stress.a.available(), 2);
  EXPECT_EQ(stress.b.available(), 1);
  EXPECT_EQ(stress.c.available(), 3);
}

}  // namespace
}  // namespace stint
