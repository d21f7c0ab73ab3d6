// The semaphore's counting, its fast path and its order.
#include "semaphore_test_support.hpp"

#include <algorithm>
#include <type_traits>

namespace stint {
namespace {

constexpr std::int64_t kUnitsMax = Semaphore::kCapacityMax;

// ---- Counting ------------------------------------------------------------------------------------------------------

TEST(Semaphore, with_capacity_0_requests_wait_until_it_grows) {
  Line line(0);
  EXPECT_FALSE(line.semaphore.try_acquire());
  line.enter("a", 3);
  EXPECT_EQ(line.news(), Log{});
  EXPECT_TRUE(line.semaphore.set_capacity(3));
  line.run();
  EXPECT_EQ(line.news(), Log{"a"});
}

TEST(Semaphore, counts_to_its_maximum_without_wrapping) {
  Semaphore semaphore("wide", kUnitsMax);
  EXPECT_EQ(semaphore.available(), kUnitsMax);
  auto all = semaphore.try_acquire(Semaphore::kCapacityMax);
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(semaphore.available(), 0);
  EXPECT_FALSE(semaphore.try_acquire(1));
  EXPECT_FALSE(semaphore.try_acquire(Semaphore::kCapacityMax));
  EXPECT_TRUE(semaphore.set_capacity(0));
  EXPECT_EQ(semaphore.available(), -kUnitsMax);
  EXPECT_TRUE(semaphore.set_capacity(kUnitsMax));
  all.reset();
  EXPECT_EQ(semaphore.available(), kUnitsMax);
}

TEST(SemaphoreDeathTest, capacity_beyond_the_maximum_is_refused) {
  EXPECT_DEATH(Semaphore("too wide", kUnitsMax + 1), "capacity");
}
TEST(SemaphoreDeathTest, negative_capacity_is_refused) { EXPECT_DEATH(Semaphore("less than nothing", -1), "capacity"); }

template <class Number>
concept Resizes = requires(Semaphore semaphore, Number number) { semaphore.set_capacity(number); };

TEST(Semaphore, fractional_capacities_do_not_compile) {
  static_assert(std::is_constructible_v<Semaphore, std::string, int>);
  static_assert(!std::is_constructible_v<Semaphore, std::string, double>);
  static_assert(!std::is_constructible_v<Semaphore, std::string, float>);
  static_assert(Resizes<int>);
  static_assert(!Resizes<double>);
}

TEST(Semaphore, unlimited_never_waits) {
  Line line(Semaphore::kUnlimited);
  for (int i = 0; i < 1000; ++i) line.enter(std::to_string(i), 1'000'000);
  EXPECT_EQ(line.log.size(), 1000u);
}

TEST(Semaphore, units_held_from_the_start_are_adopted_or_released) {
  Semaphore::Options options;
  options.initially_held = 3;
  Line line(4, 0, options);
  EXPECT_EQ(line.semaphore.available(), 1);
  line.enter("a", 4);
  EXPECT_TRUE(line.semaphore.release(1));
  line.permits["initial"] = line.semaphore.adopt(2);
  EXPECT_EQ(line.semaphore.available(), 2);
  line.give_back("initial");
  line.run();
  EXPECT_EQ(line.log, Log{"a"});
}

TEST(Semaphore, free_units_are_granted_without_suspending) {
  Line line(4);
  auto& scope = line.scopes["a"] = std::make_unique<RootScope>(line.sim);
  const auto take_three = [&line]() -> Task<> {
    const auto one = co_await line.semaphore.acquire();
    const auto two = co_await line.semaphore.acquire(2);
    const auto timed = co_await line.semaphore.acquire_until(TimePoint(1h));
    line.log.push_back(one && two && timed ? "had all" : "?");
  };
  scope->spawn(take_three());
  line.sim.step();
  EXPECT_EQ(line.log, Log{"had all"});
}

TEST(Semaphore, available_is_exact_after_each_step) {
  Line line(5);
  line.enter("two", 2);
  EXPECT_EQ(line.semaphore.available(), 3);
  line.enter("three", 3);
  EXPECT_EQ(line.semaphore.available(), 0);
  line.enter("waits", 4);
  EXPECT_EQ(line.semaphore.available(), 0);
  line.give_back("two");
  EXPECT_EQ(line.semaphore.available(), 2) << "nothing is set aside for a head that does not fit";
  line.give_back("three");
  EXPECT_EQ(line.semaphore.available(), 1);
  line.run();
  line.give_back("waits");
  EXPECT_EQ(line.semaphore.available(), 5);
}

TEST(Semaphore, try_succeeds_if_enough_is_free_and_there_are_no_waiters) {
  Line line(3);
  auto two = line.semaphore.try_acquire(2);
  EXPECT_TRUE(two.has_value());
  EXPECT_TRUE(line.semaphore.try_acquire(1).has_value());
  line.enter("a", 2);
  EXPECT_FALSE(line.semaphore.try_acquire(1)) << "there is a waiter";
}
TEST(Semaphore, try_for_too_much_changes_nothing) {
  Line line(3);
  EXPECT_FALSE(line.semaphore.try_acquire(4));
  EXPECT_EQ(line.semaphore.available(), 3);
  EXPECT_TRUE(line.semaphore.try_acquire(3).has_value());
}

TEST(Semaphore, zero_units_are_refused) {
  Line line(1);
  EXPECT_FALSE(line.semaphore.try_acquire(0));
  line.enter("free", 0);
  auto held = line.semaphore.try_acquire();
  line.enter("busy", 0);
  line.enter("waits");
  line.enter("in line", 0);
  EXPECT_EQ(line.log, (Log{"free: invalid", "busy: invalid", "in line: invalid"}));
}
TEST(Semaphore, more_than_the_capacity_is_refused) {
  Line line(2);
  line.enter("free", 3);
  auto held = line.semaphore.try_acquire(2);
  line.enter("busy", 3);
  line.enter("waits");
  line.enter("in line", 3);
  EXPECT_EQ(line.log, (Log{"free: invalid", "busy: invalid", "in line: invalid"}));
}

TEST(Semaphore, releasing_beyond_the_maximum_is_refused) {
  Semaphore::Options options;
  options.initially_held = 2;
  Semaphore semaphore("wide", kUnitsMax, options);
  EXPECT_EQ(semaphore.release(3).error(), Errc::invalid);
  EXPECT_TRUE(semaphore.release(1));
  EXPECT_TRUE(semaphore.release(1));
  EXPECT_EQ(semaphore.release(1).error(), Errc::invalid) << "also when it is reached in small steps";
  EXPECT_EQ(semaphore.release(Semaphore::kCapacityMax).error(), Errc::invalid);
  EXPECT_EQ(semaphore.set_capacity(kUnitsMax + 1).error(), Errc::invalid);
  EXPECT_EQ(semaphore.available(), kUnitsMax);
}

TEST(Semaphore, releasing_more_than_is_held_is_refused_and_changes_nothing) {
  Line line(2);
  line.permits["a"] = std::move(*line.semaphore.try_acquire(2));
  EXPECT_EQ(line.permits["a"].detach(), 2u);
  const auto refused = line.semaphore.release(3);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error(), Errc::invalid);
  EXPECT_NE(refused.error().what().find("slots"), std::string_view::npos) << "names the semaphore";
  EXPECT_EQ(line.semaphore.available(), 0);
  EXPECT_TRUE(line.semaphore.release(2));
  EXPECT_EQ(line.semaphore.release(1).error(), Errc::invalid);
  line.enter("next", 2);
  EXPECT_EQ(line.log, Log{"next"});
}
TEST(Semaphore, releasing_too_much_wakes_no_waiter) {
  Line line(3);
  line.enter("a", 2);
  line.enter("b", 2);
  EXPECT_EQ(line.semaphore.release(3).error(), Errc::invalid);
  line.run();
  EXPECT_EQ(line.log, Log{"a"});
}
TEST(Semaphore, units_of_a_permit_are_not_released_by_number) {
  for (const bool tracks : {false, true}) {
    Semaphore::Options options;
    options.track_holders = tracks;
    Line line(3, 0, options);
    line.enter("a", 2);
    line.enter("b", 2);
    EXPECT_EQ(line.semaphore.release(1).error(), Errc::invalid) << "it would be had twice";
    line.run();
    EXPECT_EQ(line.log, Log{"a"});
    EXPECT_EQ(line.semaphore.available(), 1);
    const std::uint32_t detached = line.permits["a"].split(1)->detach();
    EXPECT_EQ(line.semaphore.release(2).error(), Errc::invalid) << "one is detached, the other is a's";
    EXPECT_TRUE(line.semaphore.release(detached));
    line.run();
    EXPECT_EQ(line.log, (Log{"a", "b"}));
  }
}
TEST(SemaphoreDeathTest, units_that_are_not_detached_can_not_be_adopted) {
  Semaphore semaphore("slots", 2);
  const auto held = semaphore.try_acquire(2);
  EXPECT_DEATH((void)semaphore.adopt(1), "detached");
}
TEST(Semaphore, releasing_zero_units_does_nothing) {
  Line line(1);
  line.enter("a");
  line.enter("b");
  EXPECT_TRUE(line.semaphore.release(0));
  EXPECT_TRUE(line.permits["a"].release(0));
  Permit().release();
  line.run();
  EXPECT_EQ(line.log, Log{"a"});
  EXPECT_EQ(line.permits["a"].units(), 1u);
}

TEST(Semaphore, a_permit_may_be_returned_by_another_coroutine) {
  Line line(1);
  line.enter("acquirer");
  line.enter("next");
  const auto give_back = [](Permit permit) -> Task<> {
    co_await sleep_for(1s);
    permit.release();
  };
  line.start("releaser", give_back(std::move(line.permits["acquirer"])));
  line.sim.advance(1s);
  EXPECT_EQ(line.log, (Log{"acquirer", "next"}));
}

/// Another release happens between the check for free units and joining the line.
class SlowAcquire final : public Acquire {
 public:
  SlowAcquire(Semaphore& semaphore, std::function<void()> meanwhile)
      : Acquire(semaphore, 1), meanwhile_(std::move(meanwhile)) {}
  bool await_ready() noexcept {
    const bool ready = Acquire::await_ready();
    meanwhile_();
    return ready;
  }

 private:
  std::function<void()> meanwhile_;
};
TEST(Semaphore, a_release_between_the_check_and_the_enqueue_is_not_lost) {
  Line line(1);
  line.permits["held"] = std::move(*line.semaphore.try_acquire());
  const auto acquire = [&line]() -> Task<> {
    const auto permit = co_await SlowAcquire(line.semaphore, [&line] { line.give_back("held"); });
    line.log.push_back(permit ? "served" : "?");
  };
  line.start("a", acquire());
  EXPECT_EQ(line.log, Log{"served"});
}

// ---- Order ---------------------------------------------------------------------------------------------------------

Task<> visit(Line& line, std::string name, Log& arrived, int times) {
  for (int i = 0; i < times; ++i) {
    arrived.push_back(name);
    const auto permit = co_await line.semaphore.acquire();
    line.log.push_back(name);
    co_await yield();
  }
}
TEST(Semaphore, grants_in_order_of_arrival) {
  for_seeds(100, [](std::uint64_t seed) {
    Line line(1, seed);
    Log arrived;
    for (const char* name : {"a", "b", "c", "d", "e"}) {
      auto& scope = line.scopes[name] = std::make_unique<RootScope>(line.sim);
      scope->spawn(visit(line, name, arrived, 5));
    }
    line.sim.settle();
    EXPECT_EQ(line.log.size(), 25u);
    EXPECT_EQ(line.log, arrived);
  });
}
TEST(Semaphore, a_holder_that_releases_and_reacquires_goes_to_the_back) {
  Line line(1);
  Log arrived;
  line.start("greedy", visit(line, "greedy", arrived, 2));
  EXPECT_EQ(line.news(), (Log{"greedy", "greedy"})) << "alone it may";
  line.permits["held"] = std::move(*line.semaphore.try_acquire());
  line.start("greedy", visit(line, "greedy", arrived, 2));
  line.start("patient", visit(line, "patient", arrived, 1));
  line.give_back("held");
  line.run();
  EXPECT_EQ(line.news(), (Log{"greedy", "patient", "greedy"}));
}

TEST(Semaphore, order_is_kept_when_one_in_the_middle_leaves) {
  Line line(1);
  for (const char* name : {"a", "b", "c", "d", "e"}) line.enter(name);
  line.cancel("c");
  line.run();
  EXPECT_EQ(line.serve_all_after("a"), (Log{"b", "d", "e"}));
}

TEST(Semaphore, returned_units_belong_to_the_head_before_it_resumes) {
  Line line(1);
  line.enter("holder");
  line.enter("head");
  line.give_back("holder");
  EXPECT_EQ(line.semaphore.available(), 0);
  EXPECT_FALSE(line.semaphore.try_acquire());
  line.enter("third");
  EXPECT_EQ(line.log, (Log{"holder", "head"}));
}

TEST(Semaphore, new_requests_wait_behind_waiters_even_if_units_are_free) {
  Line line(3);
  auto held = line.semaphore.try_acquire(1);
  line.enter("big", 3);
  line.enter("plain");
  line.enter_until("timed", TimePoint(1h));
  line.enter_as("labelled", 0);
  EXPECT_FALSE(line.semaphore.try_acquire()) << "barging";
  EXPECT_FALSE(line.semaphore.try_acquire(AcquireOptions())) << "barging";
  EXPECT_EQ(line.semaphore.available(), 2);
  EXPECT_EQ(line.semaphore.waiting(), 4u);
  EXPECT_EQ(line.log, Log{});
}

TEST(Semaphore, large_head_blocks_small_followers) {
  Line line(2);
  auto held = line.semaphore.try_acquire(1);
  line.enter("big", 2);
  line.enter("small", 1);
  held.reset();
  line.run();
  EXPECT_EQ(line.news(), Log{"big"});
  line.give_back("big");
  line.run();
  EXPECT_EQ(line.news(), Log{"small"});
}

Task<> comes_for_all(Line& line) {
  line.log.push_back("arrives");
  const auto permit = co_await line.semaphore.acquire(4);
  line.log.push_back("served");
}
TEST(Semaphore, large_request_is_not_starved_by_a_stream_of_small_ones) {
  for_seeds(50, [](std::uint64_t seed) {
    Line line(4, seed);
    Log arrived;
    for (int i = 0; i < 8; ++i) {
      auto& scope = line.scopes[std::to_string(i)] = std::make_unique<RootScope>(line.sim);
      scope->spawn(visit(line, "small", arrived, 50));
    }
    ASSERT_TRUE(line.sim.run_until([&line] { return line.log.size() == 100; }));
    line.start("big", comes_for_all(line));
    line.sim.settle();
    const auto from = std::ranges::find(line.log, "arrives"), to = std::ranges::find(line.log, "served");
    ASSERT_NE(to, line.log.end());
    // At most the four that held a grant when it arrived; five more were ahead of it in line.
    EXPECT_LE(to - from, 1 + 4 + 8);
  });
}

TEST(Semaphore, one_release_grants_all_waiters_that_fit_in_one_pass) {
  Line line(100, Simulator::Order::fifo);
  line.permits["held"] = std::move(*line.semaphore.try_acquire(100));
  Log wanted;
  for (int i = 0; i < 99; ++i) wanted.push_back(std::to_string(i));
  for (const auto& name : wanted) line.enter(name);
  line.enter("two", 2);
  line.enter("one", 1);
  line.give_back("held");
  EXPECT_EQ(line.semaphore.waiting(), 2u);
  EXPECT_EQ(line.semaphore.available(), 1);
  line.run();
  EXPECT_EQ(line.log, wanted);
}
TEST(Semaphore, one_unit_does_not_wake_a_waiter_that_needs_two) {
  Line line(2);
  line.enter("a");
  line.enter("b");
  line.enter("two", 2);
  line.give_back("a");
  line.run();
  EXPECT_EQ(line.news(), (Log{"a", "b"}));
  EXPECT_EQ(line.semaphore.waiting(), 1u);
  line.give_back("b");
  line.run();
  EXPECT_EQ(line.news(), Log{"two"});
}

TEST(Semaphore, lists_waiters_in_grant_order) {
  Line line(1);
  line.sim.advance(5s);
  line.enter("holder");
  AcquireOptions options;
  options.units = 1;
  for (const auto& [label, priority] : {std::pair("low", -1), std::pair("high", 2), std::pair("high too", 2)}) {
    options.label = label;
    options.priority = priority;
    line.start(label, line.wait(label, line.semaphore.acquire(options)));
  }
  line.enter("unlabelled");
  const auto waiters = line.semaphore.waiters();
  ASSERT_EQ(waiters.size(), 4u);
  EXPECT_EQ(waiters[0].label, "high");
  EXPECT_EQ(waiters[0].priority, 2);
  EXPECT_EQ(waiters[0].units, 1u);
  EXPECT_EQ(waiters[0].since, TimePoint(5s));
  EXPECT_EQ(waiters[1].label, "high too");
  EXPECT_EQ(waiters[2].label, "");
  EXPECT_EQ(waiters[2].since, std::nullopt);
  EXPECT_EQ(waiters[3].label, "low");
  EXPECT_EQ(line.semaphore.waiters(2).size(), 2u);
}

}  // namespace
}  // namespace stint
