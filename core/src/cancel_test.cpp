// Cancellation on the simulator: how it propagates, what it waits for, what is left afterwards.
#include "stint/cancel.hpp"

#include "stint/scope.hpp"
#include "stint/semaphore.hpp"
#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

namespace stint {
namespace {

struct Stop : testing::Test {
  void settle() { sim.settle(); }
  Log log;
  Semaphore semaphore{"slots", 2};
  Simulator sim{1};
  RootScope scope{sim};
};

Task<> frame(Log& log, SlowLeaf*& leaf, int depth) {
  const Trace trace{log, "frame " + std::to_string(depth)};
  if (depth < 3) {
    co_await frame(log, leaf, depth + 1);
  } else {
    co_await SlowLeaf(leaf);
  }
  log.push_back("ran on");
}
TEST_F(Stop, destroys_three_frames_leaf_first_and_only_after_the_leaf_completed) {
  SlowLeaf* leaf = nullptr;
  scope.spawn(frame(log, leaf, 1));
  settle();
  scope.cancel();
  settle();
  EXPECT_TRUE(leaf->asked);
  EXPECT_EQ(log, Log{}) << "a frame died with its operation in flight";
  leaf->handler_ran();
  settle();
  EXPECT_EQ(log, (Log{"frame 3", "frame 2", "frame 1"}));
  EXPECT_TRUE(scope.idle());
}

Task<> acquires_after_cancel(Scope& scope, Semaphore& semaphore, Log& log) {
  co_await yield();
  scope.cancel();  // lands between two awaits; a permit is free
  auto permit = co_await semaphore.acquire();
  log.push_back("ran on");
}
TEST_F(Stop, a_cancel_between_two_awaits_stops_the_next) {
  scope.spawn(acquires_after_cancel(scope, semaphore, log));
  settle();
  EXPECT_EQ(log, Log{});
  EXPECT_TRUE(scope.idle());
  EXPECT_EQ(semaphore.available(), 2);
}

Task<> sleeps_after_cancel(Scope& scope) {
  scope.cancel();
  co_await sleep_for(1h);
}
TEST_F(Stop, a_sleep_that_begins_after_the_cancel_ends_at_once) {
  scope.spawn(sleeps_after_cancel(scope));
  settle();
  EXPECT_TRUE(scope.idle());
  EXPECT_EQ(sim.now(), TimePoint());
}

Task<> cleanup(Log& log, Duration takes) {
  co_await sleep_until(TimePoint(takes));
  co_await yield();
  log.push_back("cleaned");
}
Task<> traced_sleep(Log& log, std::string name, Duration until) {
  const Trace trace{log, std::move(name)};
  co_await sleep_until(TimePoint(until));
}
Task<> with_cleanup(Log& log, Scope* cancel_first, Duration takes) {
  const Trace trace{log, "outer gone"};
  if (cancel_first) cancel_first->cancel();
  co_await finally_do(traced_sleep(log, "body gone", 1h), cleanup(log, takes), 10s);
  log.push_back("ran on");
}
Task<> cancels_at(Scope& scope, TimePoint when) {
  co_await sleep_until(when);
  scope.cancel();
}
TEST_F(Stop, finally_do_shields_its_cleanup_and_propagates_the_stop) {
  scope.spawn(with_cleanup(log, nullptr, 5s));
  scope.spawn(cancels_at(scope, TimePoint(1s)));
  settle();
  EXPECT_EQ(log, (Log{"body gone", "cleaned", "outer gone"}));
  EXPECT_TRUE(scope.idle());
}
TEST_F(Stop, finally_do_cleans_up_even_if_a_cancel_kept_the_body_from_starting) {
  scope.spawn(with_cleanup(log, &scope, 5s));
  settle();
  EXPECT_EQ(log, (Log{"cleaned", "outer gone"}));  // an unstarted frame has no locals to destroy
}
TEST_F(Stop, finally_do_bounds_its_cleanup) {
  scope.spawn(with_cleanup(log, &scope, 1h));
  settle();
  EXPECT_EQ(log, Log{"outer gone"});
  EXPECT_EQ(sim.now(), TimePoint(10s));
}

Task<> with_limit(Semaphore& semaphore, Log& log, TimePoint deadline) {
  const auto result = co_await with_deadline(Deadline(deadline), hold(semaphore, log, "a", 2));
  log.push_back(result ? "in time" : result.error() == Errc::timed_out ? "timed out" : "?");
}
TEST_F(Stop, with_deadline_stops_the_work_beneath_and_fails_where_it_was_set) {
  scope.spawn(with_limit(semaphore, log, TimePoint(3s)));
  settle();
  EXPECT_EQ(log, (Log{"a+", "timed out"}));
  EXPECT_EQ(sim.now(), TimePoint(3s));
  EXPECT_EQ(semaphore.available(), 2) << "the stopped frame's permit came home";
}
TEST_F(Stop, a_cancel_from_above_passes_through_with_deadline) {
  scope.spawn(with_limit(semaphore, log, TimePoint(3h)));
  EXPECT_TRUE(sim.run_until([this] { return !log.empty(); }));
  scope.cancel();
  settle();
  EXPECT_EQ(log, Log{"a+"});
  EXPECT_TRUE(scope.idle());
}

Task<int> sleeper(Log& log, Duration until, int value) {
  const Trace trace{log, "gone " + std::to_string(value)};
  co_await sleep_until(TimePoint(until));
  co_return value;
}
Task<> racing(Log& log) {
  const auto winner = co_await race(sleeper(log, 1s, 1), sleeper(log, 1h, 2));
  log.push_back("won by " + std::to_string(winner.index()));
}
Task<int> slow(Log& log, SlowLeaf*& leaf) {
  const Trace trace{log, "gone 2"};
  co_await SlowLeaf(leaf);
  co_return 2;
}
Task<> racing_slow(Log& log, SlowLeaf*& leaf) {
  const auto winner = co_await race(sleeper(log, 1s, 1), slow(log, leaf));
  log.push_back("won by " + std::to_string(winner.index()));
}
TEST_F(Stop, race_waits_for_a_loser_that_stops_slowly) {
  SlowLeaf* leaf = nullptr;
  scope.spawn(racing_slow(log, leaf));
  settle();
  EXPECT_TRUE(leaf->asked);
  EXPECT_EQ(log, Log{"gone 1"});
  leaf->handler_ran();
  settle();
  EXPECT_EQ(log, (Log{"gone 1", "gone 2", "won by 0"}));
}
TEST(StopOverSeeds, race_returns_the_winner_after_the_loser_is_destroyed) {
  over_seeds([](Simulator& sim, Scope& scope, Log& log) {
    scope.spawn(racing(log));
    EXPECT_TRUE(sim.run_until([&] { return scope.idle(); }));
    EXPECT_EQ(log, (Log{"gone 1", "gone 2", "won by 0"}));
    EXPECT_EQ(sim.now(), TimePoint(1s));
  });
}

Task<> nursery(Log& log, Duration body_ends, Duration child_ends, bool fails) {
  const auto open = [&](Scope& inner) -> Task<> {
    inner.spawn(traced_sleep(log, "child gone", child_ends));
    co_await traced_sleep(log, "body gone", body_ends);
    if (fails) throw std::runtime_error("boom");
  };
  const Trace trace{log, "outer gone"};
  try {
    (void)co_await with_scope(open);
    log.push_back("ran on");
  } catch (const std::runtime_error& error) {
    log.push_back(error.what());
  }
}
TEST(StopOverSeeds, with_scope_waits_for_its_children) {
  over_seeds([](Simulator& sim, Scope& scope, Log& log) {
    scope.spawn(nursery(log, 1s, 5s, false));
    EXPECT_TRUE(sim.run_until([&] { return scope.idle(); }));
    EXPECT_EQ(log, (Log{"body gone", "child gone", "ran on", "outer gone"}));
  });
}
TEST(StopOverSeeds, a_stop_leaves_with_scope_only_after_body_and_children_are_destroyed) {
  over_seeds([](Simulator& sim, Scope& scope, Log& log) {
    scope.spawn(nursery(log, 1h, 1h, false));
    scope.spawn(cancels_at(scope, TimePoint(1s)));
    EXPECT_TRUE(sim.run_until([&] { return scope.idle(); }));
    EXPECT_EQ(log.size(), 3u);
    EXPECT_EQ(log.back(), "outer gone");
    EXPECT_EQ(sim.now(), TimePoint(1s));
  });
}
TEST(StopOverSeeds, an_exception_cancels_the_children_of_with_scope_and_then_propagates) {
  over_seeds([](Simulator& sim, Scope& scope, Log& log) {
    scope.spawn(nursery(log, 1s, 1h, true));
    EXPECT_TRUE(sim.run_until([&] { return scope.idle(); }));
    EXPECT_EQ(log, (Log{"body gone", "child gone", "boom", "outer gone"}));
    EXPECT_EQ(sim.now(), TimePoint(1s));
  });
}

TEST_F(Stop, a_tree_of_tokens_100000_deep_is_cancelled_without_recursion) {
  std::vector<std::unique_ptr<CancelToken>> tokens;
  tokens.push_back(std::make_unique<CancelToken>(sim));
  for (int i = 0; i < 100'000; ++i) tokens.push_back(std::make_unique<CancelToken>(*tokens.back()));
  CancelToken sibling(*tokens[1]);
  tokens[1]->cancel(Reason::user);
  EXPECT_FALSE(tokens[0]->cancelled());
  EXPECT_TRUE(tokens.back()->cancelled());
  EXPECT_TRUE(sibling.cancelled());
  EXPECT_TRUE(CancelToken(sibling).cancelled()) << "born under a cancelled parent";
  sibling.unlink();
  while (!tokens.empty()) tokens.pop_back();
}

// ---- Batches -------------------------------------------------------------------------------------------------------

Task<> sleeps(Duration duration) { co_await sleep_for(duration); }
Task<> checks_token(int& ran) {
  while (true) {
    co_await yield();
    ++ran;
  }
}
TEST_F(Stop, a_large_cancel_marks_all_chains_at_once_and_stops_them_in_batches) {
  constexpr int kMany = 10 * Executor::kCancelsPerBatch;
  for (int i = 0; i < kMany; ++i) scope.spawn(sleeps(1h));
  sim.run_ready();
  scope.cancel();
  EXPECT_EQ(scope.running(), static_cast<std::size_t>(kMany));
  int steps = 0;
  while (!scope.idle()) {
    ASSERT_TRUE(sim.step());
    ++steps;
  }
  EXPECT_GE(steps, kMany + 9) << "the walk takes its turns among the others";
  EXPECT_EQ(sim.now(), TimePoint(0s));
}
TEST_F(Stop, a_wait_that_begins_during_a_large_cancel_stops) {
  int ran = 0;
  for (int i = 0; i < 3 * Executor::kCancelsPerBatch; ++i) scope.spawn(sleeps(1h));
  scope.spawn(checks_token(ran));
  for (int i = 0; i < 10'000; ++i) sim.step();
  scope.cancel();
  const int before = ran;
  sim.settle();
  EXPECT_EQ(ran, before) << "the mark is everywhere at once, only the telling takes its time";
  EXPECT_TRUE(scope.idle());
}
TEST_F(Stop, an_executor_may_be_destroyed_during_a_large_cancel) {
  auto other = std::make_unique<Simulator>(3);
  RootScope many(*other);
  for (int i = 0; i < 3 * Executor::kCancelsPerBatch; ++i) many.spawn(sleeps(1h));
  other->run_ready();
  many.cancel();
  other.reset();
}
TEST_F(Stop, cancels_during_a_cancel_are_not_lost) {
  RootScope second(sim);
  for (int i = 0; i < 3 * Executor::kCancelsPerBatch; ++i) scope.spawn(sleeps(1h));
  for (int i = 0; i < 3 * Executor::kCancelsPerBatch; ++i) second.spawn(sleeps(1h));
  sim.run_ready();
  scope.cancel();
  second.cancel();
  sim.settle();
  EXPECT_TRUE(scope.idle());
  EXPECT_TRUE(second.idle());
  EXPECT_EQ(sim.now(), TimePoint(0s));
}

// ---- Tokens --------------------------------------------------------------------------------------------------------

TEST_F(Stop, a_parent_cancels_its_child_and_a_child_not_its_parent) {
  CancelToken parent(sim), child(parent), grandchild(child), sibling(parent);
  child.cancel(Reason::user, "only here");
  EXPECT_TRUE(grandchild.cancelled());
  EXPECT_EQ(grandchild.cause(), "only here");
  EXPECT_FALSE(parent.cancelled());
  EXPECT_FALSE(sibling.cancelled());
  parent.cancel(Reason::shutdown);
  EXPECT_TRUE(sibling.cancelled());
  EXPECT_EQ(child.reason(), Reason::user) << "the first reason stays";
}
TEST_F(Stop, a_hundred_thousand_siblings_start_and_end) {
  CancelToken parent(sim);
  std::vector<std::unique_ptr<CancelToken>> tokens;
  for (int i = 0; i < 100'000; ++i) tokens.push_back(std::make_unique<CancelToken>(parent));
  for (std::size_t i = 0; i < tokens.size(); i += 2) tokens[i].reset();
  parent.cancel(Reason::user);
  EXPECT_TRUE(tokens[99'999]->cancelled());
}
Task<> cancels_itself(Scope& scope, Log& log) {
  co_await yield();
  scope.cancel(Reason::user, "by itself");
  log.push_back("goes on to its next await");
  co_await yield();
  log.push_back("ran on");
}
TEST_F(Stop, a_frame_that_cancels_its_own_scope_runs_until_its_next_await) {
  scope.spawn(cancels_itself(scope, log));
  settle();
  EXPECT_EQ(log, Log{"goes on to its next await"});
}
TEST_F(Stop, a_second_cancel_changes_nothing) {
  scope.spawn(sleeps(1h));
  sim.run_ready();
  scope.cancel(Reason::shutdown, "first");
  scope.cancel(Reason::user, "second");
  settle();
  EXPECT_EQ(scope.cause(), "first");
}

TEST(CancelTest, every_resume_beneath_a_watched_token_is_counted) {
  Simulator sim;
  RootScope scope(sim);
  std::atomic<std::uint32_t> pulse = 0;
  scope.count_resumes(pulse);
  const auto inner = []() -> Task<> {
    for (int i = 0; i < 10; ++i) co_await sleep_for(1s);
  };
  scope.spawn(inner());
  sim.settle();
  const std::uint32_t here = pulse;
  EXPECT_GE(here, 10u);
  const auto nested = [](Task<> task) -> Task<> { (void)co_await with_deadline(Deadline(), std::move(task)); };
  scope.spawn(nested(inner()));
  sim.settle();
  EXPECT_GE(pulse - here, 10u) << "in a token that was born later, too";
}

}  // namespace
}  // namespace stint
