// The mutex: ownership, order, close and destruction.
#include "stint/mutex.hpp"

#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

namespace stint {
namespace {

struct MutexTest : testing::Test {
  /// Starts a chain in its own scope and runs until nothing is ready.
  Scope& start(Task<> task) {
    scopes.push_back(std::make_unique<RootScope>(sim));
    scopes.back()->spawn(std::move(task));
    sim.run_ready();
    return *scopes.back();
  }
  void say(const std::string& caller, const Result<MutexGuard>& guard) {
    log.push_back(caller + (guard ? "+" : " " + std::string(to_string(guard.error().code()))));
  }
  /// Locks, logs it, and holds the lock for `keep`.
  Task<> locks(std::string caller, int priority = 0, Duration keep = 1s) {
    LockOptions options;
    options.priority = priority;
    options.label = caller;
    const auto guard = co_await mutex.lock(options);
    say(caller, guard);
    if (guard) co_await sleep_for(keep);
  }
  Task<> locks_until(std::string caller, TimePoint when) {
    const auto guard = co_await mutex.lock_until(when);
    say(caller, guard);
    if (guard) co_await sleep_for(1s);
  }
  void TearDown() override {
    for (auto& scope : scopes) scope->cancel();
    sim.run_ready();
    EXPECT_FALSE(mutex.holder());
  }

  Log log;
  Mutex mutex{"state"}, other{"other"};
  std::vector<std::unique_ptr<RootScope>> scopes;
  Simulator sim{1};  // last member: destroyed first, with every frame
};

// ---- Locking -------------------------------------------------------------------------------------------------------

TEST_F(MutexTest, waiters_get_the_mutex_in_order_of_arrival) {
  for (const char* caller : {"a", "b", "c"}) start(locks(caller));
  EXPECT_EQ(log, Log{"a+"});
  EXPECT_EQ(mutex.waiting(), 2u);
  sim.advance(1s);
  EXPECT_EQ(log, (Log{"a+", "b+"}));
  sim.settle();
  EXPECT_EQ(log, (Log{"a+", "b+", "c+"}));
  EXPECT_FALSE(mutex.holder());
}
TEST_F(MutexTest, higher_priorities_go_first) {
  start(locks("holder"));
  start(locks("low", -1));
  start(locks("high", 3));
  start(locks("normal"));
  sim.settle();
  EXPECT_EQ(log, (Log{"holder+", "high+", "normal+", "low+"}));
}
TEST_F(MutexTest, the_oldest_waiter_is_passed_over_at_most_sixteen_times) {
  start(locks("holder"));
  start(locks("low", -1));
  for (int i = 0; i < 30; ++i) start(locks("high", 1));
  sim.settle();
  EXPECT_EQ(std::ranges::find(log, "low+") - log.begin(), 1 + 16);
}
TEST_F(MutexTest, the_count_restarts_for_the_next_oldest) {
  start(locks("holder"));
  start(locks("low", -1));
  start(locks("low too", -1));
  for (int i = 0; i < 40; ++i) start(locks("high", 1));
  sim.settle();
  EXPECT_EQ(std::ranges::find(log, "low+") - log.begin(), 1 + 16);
  EXPECT_EQ(std::ranges::find(log, "low too+") - log.begin(), 1 + 16 + 1 + 16);
}
TEST_F(MutexTest, assigning_a_guard_unlocks_what_it_held) {
  const auto moves = [](Mutex& first, Mutex& second, Log& seen) -> Task<> {
    MutexGuard guard = *co_await first.lock();
    MutexGuard moved = std::move(guard);
    EXPECT_FALSE(guard);  // NOLINT: what is left of a guard is empty
    EXPECT_EQ(moved.mutex(), &first);
    auto& self = moved;
    moved = std::move(self);
    EXPECT_TRUE(moved);
    moved = *co_await second.lock();
    EXPECT_FALSE(first.holder());
    EXPECT_TRUE(second.holder());
    EXPECT_TRUE((co_await moved.unlock()).has_value());
    EXPECT_FALSE(second.holder());
    EXPECT_EQ((co_await moved.unlock()).error(), Errc::invalid);
    seen.push_back("done");
  };
  start(moves(mutex, other, log));
  EXPECT_EQ(log, Log{"done"});
}
TEST_F(MutexTest, try_lock_never_waits_and_never_barges) {
  const auto tries = [](Mutex& wanted, Log& seen) -> Task<> {
    const auto guard = co_await wanted.try_lock();
    seen.push_back(guard ? "had" : std::string(to_string(guard.error().code())));
  };
  start(tries(mutex, log));
  Scope& holder = start(locks("a", 0, 1h));
  start(tries(mutex, log));
  start(locks("b"));
  holder.cancel();
  while (mutex.holder()) sim.step();
  RootScope third(sim);
  third.spawn(tries(mutex, log));  // may run before b, which was granted the mutex, has resumed
  sim.run_ready();
  std::ranges::sort(log);
  EXPECT_EQ(log, (Log{"a+", "b+", "conflict", "conflict", "had"}));
}
TEST_F(MutexTest, a_priority_out_of_range_is_refused_even_if_the_mutex_is_free) {
  start(locks("x", 4));
  start(locks("y", -5));
  EXPECT_EQ(log, (Log{"x invalid", "y invalid"}));
}
TEST_F(MutexTest, lists_holder_and_waiters_with_effective_priorities) {
  sim.advance(5s);
  start(locks("low", -2, 1h));
  start(locks("high", 2));
  start(locks("normal"));
  const auto holder = mutex.holder();
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->label, "low");
  EXPECT_EQ(holder->priority, -2);
  EXPECT_EQ(holder->effective, 2);
  EXPECT_EQ(holder->since, TimePoint(5s));
  const auto waiters = mutex.waiters();
  ASSERT_EQ(waiters.size(), 2u);
  EXPECT_EQ(waiters[0].label, "high");
  EXPECT_EQ(waiters[1].label, "normal");
  EXPECT_EQ(waiters[1].effective, 0);
}

// ---- The owner -----------------------------------------------------------------------------------------------------

TEST_F(MutexTest, recursive_locking_is_refused_at_once) {
  const auto twice = [](Mutex& wanted, Log& seen) -> Task<> {
    const auto first = co_await wanted.lock();
    const auto second = co_await wanted.lock();
    seen.push_back(std::string(second.error().what()));
    const auto third = co_await wanted.try_lock();
    seen.push_back(std::string(to_string(third.error().code())));
    const auto beneath = co_await with_deadline(Deadline(TimePoint(1h)), awaited(wanted.lock()));
    seen.push_back(std::string(to_string(beneath.error().code())));
  };
  start(twice(mutex, log));
  EXPECT_EQ(log,
            (Log{"mutex 'state': already held by the calling chain: it would wait for itself", "invalid", "invalid"}));
  EXPECT_EQ(sim.now(), TimePoint());
}
TEST_F(MutexTest, branches_of_one_chain_exclude_each_other) {
  const auto both = [](MutexTest& test) -> Task<> { (void)co_await all(test.locks("a"), test.locks("b")); };
  start(both(*this));
  sim.settle();
  EXPECT_EQ(log.size(), 2u);
  EXPECT_EQ(sim.now(), TimePoint(2s));
}
TEST_F(MutexTest, a_cycle_of_waits_is_refused_unless_a_wait_has_a_deadline) {
  const auto takes = [](Mutex& first, Mutex& second, Duration after, TimePoint until, Log& seen) -> Task<> {
    auto one = co_await first.lock();
    co_await sleep_for(after);
    LockOptions options;
    options.deadline = Deadline(until);
    auto two = co_await second.lock(options);
    seen.push_back(two ? "both" : std::string(to_string(two.error().code())));
  };
  start(takes(mutex, other, 1s, TimePoint::max(), log));
  start(takes(other, mutex, 2s, TimePoint::max(), log));
  sim.settle();
  EXPECT_EQ(log, (Log{"conflict", "both"}))
      << "the chain that got the conflict released its lock, and the other continued";
  for (const Duration after : {1s, 3s}) {  // whichever of the two comes first
    log.clear();
    start(takes(mutex, other, after, sim.now() + 5s, log));
    start(takes(other, mutex, 2s, TimePoint::max(), log));
    sim.settle();
    EXPECT_EQ(log, (Log{"timed out", "both"}));
  }
}
TEST_F(MutexTest, unlocking_by_another_chain_is_denied_and_changes_nothing) {
  MutexGuard shared;
  const auto owns = [](Mutex& wanted, MutexGuard& guard, Log& seen) -> Task<> {
    LockOptions options;
    options.label = "owner";
    guard = *co_await wanted.lock(options);
    co_await sleep_for(1s);
    seen.push_back((co_await guard.unlock()) ? "owner unlocks" : "?");
  };
  const auto meddles = [](MutexGuard& guard, Log& seen) -> Task<> {
    seen.push_back(std::string((co_await guard.unlock()).error().what()));
  };
  start(owns(mutex, shared, log));
  start(meddles(shared, log));
  EXPECT_EQ(log, Log{"mutex 'state': unlocked by a chain that does not own it; the owner is another chain, 'owner'"});
  EXPECT_TRUE(mutex.holder());
  EXPECT_TRUE(shared);
  sim.settle();
  EXPECT_EQ(log.back(), "owner unlocks");
}
TEST_F(MutexTest, a_branch_beneath_the_owner_may_unlock_a_borrowed_guard) {
  const auto unlocks = [](MutexGuard& guard) -> Task<> { EXPECT_TRUE((co_await guard.unlock()).has_value()); };
  const auto passes_guard = [&unlocks](Mutex& wanted) -> Task<> {
    auto guard = co_await wanted.lock();
    (void)co_await with_deadline(Deadline(TimePoint(1h)), unlocks(*guard));
    EXPECT_FALSE(wanted.holder());
  };
  start(passes_guard(mutex));
}
TEST_F(MutexTest, a_guard_that_a_branch_returns_belongs_to_the_chain_above) {
  const auto selects = [](Mutex& wanted, Log& seen) -> Task<> {
    auto winner = co_await select(wanted.lock(), sleep_for(5s));
    EXPECT_EQ(winner.index(), 0u);
    MutexGuard guard = *std::move(std::get<0>(winner));
    const auto again = co_await wanted.lock();
    seen.push_back(std::string(to_string(again.error().code())));
    EXPECT_TRUE((co_await guard.unlock()).has_value());
    seen.push_back("unlocked");
  };
  start(selects(mutex, log));
  EXPECT_EQ(log, (Log{"invalid", "unlocked"}));
}
TEST_F(MutexTest, a_guard_that_outlives_its_chain_may_be_unlocked_by_any_chain) {
  MutexGuard left;
  const auto leaves = [](Mutex& wanted, MutexGuard& guard) -> Task<> { guard = *co_await wanted.lock(); };
  const auto cleans_up = [](MutexGuard& guard) -> Task<> { EXPECT_TRUE((co_await guard.unlock()).has_value()); };
  start(leaves(mutex, left));
  ASSERT_TRUE(mutex.holder());
  EXPECT_TRUE(mutex.holder()->abandoned);
  start(locks("next"));
  EXPECT_EQ(log, Log{}) << "it is locked all the same";
  start(cleans_up(left));
  EXPECT_EQ(log, Log{"next+"});
}

// ---- Cancel, deadline, close, death --------------------------------------------------------------------------------

TEST_F(MutexTest, a_cancelled_waiter_leaves_the_line) {
  start(locks("holder"));
  Scope& first = start(locks("first"));
  start(locks("second"));
  first.cancel();
  EXPECT_EQ(mutex.waiting(), 1u);
  sim.settle();
  EXPECT_EQ(log, (Log{"holder+", "second+"}));
}
TEST_F(MutexTest, a_cancel_before_the_waiter_resumes_passes_the_mutex_on) {
  Scope& holder = start(locks("holder", 0, 1h));
  Scope& first = start(locks("first"));
  start(locks("second"));
  holder.cancel();
  EXPECT_TRUE(sim.run_until([this] { return !mutex.holder(); }));  // granted to the first, which has not resumed
  first.cancel();
  sim.run_ready();
  EXPECT_EQ(log, (Log{"holder+", "second+"}));
}
TEST_F(MutexTest, a_chain_that_is_cancelled_already_does_not_lock) {
  RootScope scope(sim);
  const auto late = [](RootScope& own, MutexTest& test) -> Task<> {
    own.cancel();  // between two awaits
    co_await test.locks("late");
  };
  scope.spawn(late(scope, *this));
  sim.run_ready();
  EXPECT_EQ(log, Log{});
  EXPECT_FALSE(mutex.holder());
}
TEST_F(MutexTest, a_timed_lock_times_out_at_its_deadline) {
  start(locks("holder", 0, 5s));
  start(locks_until("timed", TimePoint(2s)));
  start(locks("next"));
  sim.advance(1999ms);
  EXPECT_EQ(mutex.waiting(), 2u);
  sim.advance(1ms);
  EXPECT_EQ(log, (Log{"holder+", "timed timed out"}));
  sim.settle();
  EXPECT_EQ(log.back(), "next+");
}
TEST_F(MutexTest, a_free_mutex_is_granted_after_the_deadline) {
  sim.advance(1h);
  start(locks_until("late", TimePoint(1s)));
  EXPECT_EQ(log, Log{"late+"});
}
TEST_F(MutexTest, close_fails_all_waiters_and_keeps_the_holder) {
  start(locks("holder"));
  for (int i = 0; i < 40; ++i) start(locks("waiter"));
  EXPECT_FALSE(mutex.closed());
  mutex.close();
  mutex.close();
  EXPECT_TRUE(mutex.closed());
  sim.run_ready();
  EXPECT_EQ(log.size(), 41u);
  EXPECT_EQ(log.back(), "waiter closed");
  EXPECT_TRUE(mutex.holder());
  start(locks("late"));
  EXPECT_EQ(log.back(), "late closed");
}
TEST_F(MutexTest, an_owner_that_is_stopped_or_throws_releases_the_mutex) {
  const auto throws = [](Mutex& wanted) -> Task<> {
    const auto guard = co_await wanted.lock();
    throw std::runtime_error("boom");
  };
  Scope& stopped = start(locks("stopped", 0, 1h));
  start(locks("next", 0, 0s));
  stopped.cancel();
  sim.settle();
  EXPECT_EQ(log, (Log{"stopped+", "next+"}));
  start(throws(mutex));
  EXPECT_FALSE(mutex.holder());
}
TEST_F(MutexTest, is_released_when_the_executor_of_its_owner_is_destroyed) {
  std::optional<Simulator> mortal(2);
  RootScope scope(*mortal);
  scope.spawn(locks("mortal", 0, 1h));
  mortal->run_ready();
  scope.spawn(locks("mortal too"));
  mortal->run_ready();
  start(locks("survivor"));
  EXPECT_EQ(mutex.waiting(), 2u);
  mortal.reset();
  sim.run_ready();
  EXPECT_EQ(log, (Log{"mortal+", "survivor+"}));
}
TEST_F(MutexTest, a_guard_whose_executor_is_destroyed_may_be_destroyed_by_any_chain) {
  MutexGuard left;
  const auto leaves = [](Mutex& wanted, MutexGuard& guard) -> Task<> {
    guard = *co_await wanted.lock();
    co_await sleep_for(1h);
  };
  std::optional<Simulator> mortal(2);
  RootScope scope(*mortal);
  scope.spawn(leaves(mutex, left));
  mortal->run_ready();
  EXPECT_FALSE(mutex.holder()->abandoned);
  mortal.reset();
  EXPECT_TRUE(mutex.holder()->abandoned);
  left = MutexGuard();
  EXPECT_FALSE(mutex.holder());
}
TEST_F(MutexTest, a_guard_of_a_branch_destroyed_with_its_executor_may_be_destroyed_by_any_chain) {
  MutexGuard left;
  const auto leaves = [](Mutex& wanted, MutexGuard& guard) -> Task<> {
    guard = *co_await wanted.lock();
    co_await sleep_for(1h);
  };
  const auto parent = [&leaves](Mutex& wanted, MutexGuard& guard) -> Task<> {
    (void)co_await with_deadline(Deadline(TimePoint(2h)), leaves(wanted, guard));
  };
  std::optional<Simulator> mortal(2);
  RootScope scope(*mortal);
  scope.spawn(parent(mutex, left));
  mortal->run_ready();
  EXPECT_FALSE(mutex.holder()->abandoned);
  mortal.reset();
  EXPECT_TRUE(mutex.holder()->abandoned);
  left = MutexGuard();
}
using MutexDeathTest = MutexTest;
TEST_F(MutexDeathTest, must_not_be_destroyed_while_held_or_with_waiters) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto keeps = [](Mutex& wanted) -> Task<> {
    const auto guard = co_await wanted.lock();
    co_await sleep_for(1h);
  };
  EXPECT_DEATH(
      {
        auto doomed = std::make_unique<Mutex>("doomed");
        start(keeps(*doomed));
        doomed.reset();
      },
      "this mutex is still locked");
}

}  // namespace
}  // namespace stint
