// race, all, select, shield and the rest, on the simulator. Tests about order run over many seeds.
#include "stint/combinators.hpp"

#include "stint/queue.hpp"
#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace stint {
namespace {

Task<int> number(Log& log, Duration until, int value) {
  const Trace trace{log, "gone " + std::to_string(value)};
  co_await sleep_until(TimePoint(until));
  co_return value;
}
Task<std::string> text(std::string value) {
  co_await yield();
  co_return value;
}
Task<> nothing(Duration until) { co_await sleep_until(TimePoint(until)); }
Task<Result<int>> maybe(Log& log, Duration until, int value) {
  const Trace trace{log, "gone " + std::to_string(value)};
  co_await sleep_until(TimePoint(until));
  if (value < 0) co_return fail(Errc::failed, "negative");
  co_return value;
}
Task<int> throws_at(Duration until) {
  co_await sleep_until(TimePoint(until));
  throw std::runtime_error("boom");
}

// ---- race ----------------------------------------------------------------------------------------------------------

Task<> three_ways(Log& log) {
  const auto winner = co_await race(number(log, 3s, 3), nothing(1s), number(log, 2s, 2));
  log.push_back("won by " + std::to_string(winner.index()));
}
TEST(Race, of_three_with_void_returns_the_first_after_the_others_are_destroyed) {
  over_seeds([](Simulator& sim, RootScope& scope, Log& log) {
    scope.spawn(three_ways(log));
    sim.settle();
    ASSERT_EQ(log.size(), 3u);
    EXPECT_EQ(log[2], "won by 1");
    EXPECT_EQ(sim.now(), TimePoint(1s));
  });
}
Task<> racing_a_throw(Log& log) {
  try {
    (void)co_await race(number(log, 1h, 1), throws_at(1s));
  } catch (const std::runtime_error& error) {
    log.push_back(error.what());
  }
}
TEST(Race, an_exception_counts_as_a_finish_and_is_rethrown_after_the_others_are_destroyed) {
  over_seeds([](Simulator& sim, RootScope& scope, Log& log) {
    scope.spawn(racing_a_throw(log));
    sim.settle();
    EXPECT_EQ(log, (Log{"gone 1", "boom"}));
  });
}

// ---- all -----------------------------------------------------------------------------------------------------------

Task<> all_plain(Log& log) {
  const auto [a, b, c] = co_await all(number(log, 2s, 1), text("x"), nothing(1s));
  log.push_back(std::to_string(a) + b);
}
TEST(All, returns_the_results_in_argument_order) {
  over_seeds([](Simulator& sim, RootScope& scope, Log& log) {
    scope.spawn(all_plain(log));
    sim.settle();
    EXPECT_EQ(log, (Log{"gone 1", "1x"}));
    EXPECT_EQ(sim.now(), TimePoint(2s));
  });
}
Task<> all_with_a_failure(Log& log) {
  const auto result = co_await all(maybe(log, 1h, 1), maybe(log, 1s, -1), number(log, 2s, 2));
  log.push_back(result ? "ok" : std::string(result.error().what()));
}
TEST(All, the_first_failure_stops_the_others_and_is_returned) {
  over_seeds([](Simulator& sim, RootScope& scope, Log& log) {
    scope.spawn(all_with_a_failure(log));
    sim.settle();
    ASSERT_EQ(log.size(), 4u);
    EXPECT_EQ(log[0], "gone -1");
    EXPECT_EQ(log[3], "negative");
    EXPECT_EQ(sim.now(), TimePoint(1s));
  });
}
Task<> all_with_a_throw(Log& log) {
  try {
    (void)co_await all(number(log, 1h, 1), throws_at(1s));
  } catch (const std::runtime_error& error) {
    log.push_back(error.what());
  }
}
TEST(All, an_exception_stops_the_others_and_propagates) {
  over_seeds([](Simulator& sim, RootScope& scope, Log& log) {
    scope.spawn(all_with_a_throw(log));
    sim.settle();
    EXPECT_EQ(log, (Log{"gone 1", "boom"}));
  });
}
Task<> all_results(Log& log) {
  const auto result = co_await all(maybe(log, 1s, 1), maybe(log, 2s, 2));
  log.push_back(std::to_string(std::get<0>(*result) + std::get<1>(*result)));
}
TEST(All, of_results_returns_a_result_of_the_values) {
  over_seeds([](Simulator& sim, RootScope& scope, Log& log) {
    scope.spawn(all_results(log));
    sim.settle();
    EXPECT_EQ(log.back(), "3");
  });
}

// ---- select --------------------------------------------------------------------------------------------------------

Task<> selects(Semaphore& semaphore, CancelToken& other, Log& log) {
  auto first = co_await select(semaphore.acquire(), cancelled(other), sleep_for(5s));
  switch (first.index()) {
    case 0: log.push_back("acquired"); break;
    case 1: log.push_back("cancelled"); break;
    default: log.push_back("after");
  }
}
struct SelectTest : testing::TestWithParam<int> {
  Log log;
  Semaphore semaphore{"slots", 1};
  Simulator sim{static_cast<std::uint64_t>(GetParam())};
  RootScope scope{sim};
  RootScope other{sim};
};
TEST_P(SelectTest, returns_the_permit_if_it_is_granted_first) {
  scope.spawn(selects(semaphore, other, log));
  sim.settle();
  EXPECT_EQ(log, Log{"acquired"});
  EXPECT_EQ(semaphore.available(), 1);
  EXPECT_EQ(sim.now(), TimePoint(0s)) << "the timer was withdrawn";
}
TEST_P(SelectTest, withdraws_the_acquire_when_the_sleep_ends_first) {
  const auto held = semaphore.try_acquire();
  scope.spawn(selects(semaphore, other, log));
  sim.settle();
  EXPECT_EQ(log, Log{"after"});
  EXPECT_EQ(semaphore.waiting(), 0u);
}
TEST_P(SelectTest, returns_when_another_token_is_cancelled) {
  const auto held = semaphore.try_acquire();
  scope.spawn(selects(semaphore, other, log));
  sim.run_ready();
  other.cancel();
  sim.settle();
  EXPECT_EQ(log, Log{"cancelled"});
  EXPECT_EQ(sim.now(), TimePoint(0s));
}
TEST_P(SelectTest, is_stopped_by_its_own_cancel_and_leaves_no_waiter) {
  const auto held = semaphore.try_acquire();
  scope.spawn(selects(semaphore, other, log));
  sim.run_ready();
  scope.cancel();
  sim.run_ready();
  EXPECT_EQ(log, Log{});
  EXPECT_TRUE(scope.idle());
  EXPECT_EQ(semaphore.waiting(), 0u);
}
TEST_P(SelectTest, returns_a_permit_granted_together_with_a_cancel) {
  auto held = semaphore.try_acquire();
  scope.spawn(selects(semaphore, other, log));
  sim.run_ready();
  held.reset();
  other.cancel();
  sim.settle();
  EXPECT_EQ(log.size(), 1u);
  EXPECT_EQ(semaphore.available(), 1);
}
/// Each argument is ready at the start, becomes ready later, or never: in every combination and order, on every seed.
enum class When : std::uint8_t { start, later, never };
struct Waits {
  std::array<Semaphore, 3> semaphores{Semaphore("a", 1), Semaphore("b", 1), Semaphore("c", 1)};
  std::array<std::optional<Permit>, 3> held;
};
Task<> selects_one_of(Waits& waits, std::size_t& won) {
  const auto first = co_await select(waits.semaphores[0].acquire(), waits.semaphores[1].acquire(),
                                     waits.semaphores[2].acquire(), sleep_for(1h));
  won = first.index();
}
TEST_P(SelectTest, the_first_ready_argument_wins) {
  constexpr std::array kAll = {When::start, When::later, When::never};
  for (int which = 0; which < 27 * 6; ++which) {
    const std::array when = {kAll[which % 3], kAll[which / 3 % 3], kAll[which / 9 % 3]};
    std::array<std::size_t, 3> order{0, 1, 2};  // order of becoming ready
    for (int i = 0; i < which / 27; ++i) std::ranges::next_permutation(order);
    Waits waits;
    std::size_t won = 99, wanted = 3;
    for (std::size_t i = 3; i-- > 0;) {
      if (when[i] != When::start) waits.held[i] = waits.semaphores[i].try_acquire();
      if (when[i] != When::never) wanted = i;
    }
    scope.spawn(selects_one_of(waits, won));
    if (std::ranges::find(when, When::start) == when.end()) sim.run_ready();
    for (const std::size_t i : order) {  // all of them before anything starts, or resumes
      if (when[i] == When::later) waits.held[i].reset();
    }
    sim.settle();
    ASSERT_EQ(won, wanted) << which;
    for (std::size_t i = 0; i < 3; ++i) {
      waits.held[i].reset();
      ASSERT_EQ(waits.semaphores[i].available(), 1) << "what the others had won goes back";
    }
  }
}
TEST_P(SelectTest, awaitables_that_are_always_ready_count_from_the_start) {
  other.cancel();
  Queue<int> queue("jobs", 1);
  ASSERT_TRUE(queue.try_push(7));
  const auto asks = [](CancelToken& token, Queue<int>& from, Semaphore& slots, Log& to) -> Task<> {
    const auto cancel = co_await select(cancelled(token), from.pop(), slots.acquire());
    to.push_back(std::to_string(cancel.index()));
    const auto past = co_await select(sleep_until(TimePoint()), from.pop());
    to.push_back(std::to_string(past.index()));
    const auto item = co_await select(from.pop(), sleep_until(TimePoint()), cancelled(token));
    to.push_back(std::to_string(item.index()) + ": " + std::to_string(*std::get<0>(item)));
    const auto turn = co_await select(yield(), slots.acquire());
    to.push_back(std::to_string(turn.index()));
  };
  scope.spawn(asks(other, queue, semaphore, log));
  sim.settle();
  EXPECT_EQ(log, (Log{"0", "0", "0: 7", "0"}));
  EXPECT_EQ(semaphore.available(), 1);
}
Task<> pops_or_stops(Queue<int>& first, Queue<int>& second, std::vector<int>& items) {
  const auto got = co_await select(first.pop(), second.pop());
  items.push_back(got.index() == 0 ? *std::get<0>(got) : *std::get<1>(got));
}
TEST_P(SelectTest, an_item_for_a_branch_that_lost_stays_in_its_queue) {
  Queue<int> first("first", 1), second("second", 1);
  std::vector<int> items;
  scope.spawn(pops_or_stops(first, second, items));
  sim.run_ready();
  ASSERT_TRUE(second.try_push(2));
  ASSERT_TRUE(first.try_push(1));
  sim.settle();
  EXPECT_EQ(items, std::vector{1});
  EXPECT_EQ(second.try_pop(), 2);
}
TEST_P(SelectTest, a_cancel_before_its_first_wait_stops_it) {
  scope.spawn(selects(semaphore, other, log));
  sim.step();
  scope.cancel();
  sim.settle();
  EXPECT_EQ(log, Log{});
  EXPECT_EQ(semaphore.available(), 1);
}
Task<int> takes_turns(int turns) {
  for (int i = 0; i < turns; ++i) co_await yield();
  co_return turns;
}
TEST_P(SelectTest, a_task_is_ready_when_it_has_ended) {
  const auto asks = [](Log& to) -> Task<> {
    const auto first = co_await select(takes_turns(5), sleep_for(1s));
    to.push_back(std::to_string(std::get<0>(first)));
  };
  scope.spawn(asks(log));
  sim.settle();
  EXPECT_EQ(log, Log{"5"});
}
INSTANTIATE_TEST_SUITE_P(Seeds, SelectTest, testing::Range(0, 20));

// ---- shield, finally_do --------------------------------------------------------------------------------------------

Task<> shielded(Semaphore& semaphore, Log& log) {
  const Trace trace{log, "outer gone"};
  const auto inner = [](Semaphore& from, Log& to) -> Task<> {
    const auto permit = co_await from.acquire();
    to.push_back("granted");
  };
  co_await shield(inner(semaphore, log));
  log.push_back("ran on");
}
TEST(Shield, a_shielded_acquire_ignores_a_cancel_until_granted_and_then_stops) {
  over_seeds([](Simulator& sim, RootScope& scope, Log& log) {
    Semaphore semaphore("slots", 1);
    auto held = semaphore.try_acquire();
    scope.spawn(shielded(semaphore, log));
    sim.run_ready();
    scope.cancel();
    sim.settle();
    EXPECT_EQ(log, Log{});
    EXPECT_EQ(semaphore.waiting(), 1u);
    held.reset();
    sim.settle();
    EXPECT_EQ(log, (Log{"granted", "outer gone"}));
    EXPECT_EQ(semaphore.available(), 1);
  });
}

Task<> cleanup_throws() {
  co_await yield();
  throw std::runtime_error("cleanup");
}
Task<> body_then_bad_cleanup(Log& log) {
  try {
    (void)co_await finally_do(number(log, 1s, 1), cleanup_throws(), 1s);
  } catch (const std::runtime_error& error) {
    log.push_back(error.what());
  }
}
TEST(FinallyDo, an_exception_of_the_cleanup_is_not_lost) {
  over_seeds([](Simulator& sim, RootScope& scope, Log& log) {
    scope.spawn(body_then_bad_cleanup(log));
    sim.settle();
    EXPECT_EQ(log, (Log{"gone 1", "cleanup"}));
  });
}

// ---- with_deadline -------------------------------------------------------------------------------------------------

Task<> too_late(Log& log, Executor& executor) {
  const auto result = co_await with_deadline(Deadline(executor.now()), number(log, 1s, 1));
  log.push_back(result ? "ok" : std::string(to_string(result.error().code())));
}
TEST(WithDeadline, does_not_start_work_after_the_deadline) {
  over_seeds([](Simulator& sim, RootScope& scope, Log& log) {
    scope.spawn(too_late(log, sim));
    sim.settle();
    EXPECT_EQ(log, Log{"timed out"});
    EXPECT_EQ(sim.now(), TimePoint(0s));
  });
}
Task<> flattens(Log& log) {
  const Result<int> result = co_await with_deadline(Deadline(TimePoint(5s)), maybe(log, 1s, -1));
  log.push_back(std::string(result.error().what()));
}
TEST(WithDeadline, does_not_nest_results) {
  over_seeds([](Simulator& sim, RootScope& scope, Log& log) {
    scope.spawn(flattens(log));
    sim.settle();
    EXPECT_EQ(log, (Log{"gone -1", "negative"}));
  });
}
Task<> nested_deadlines(Deadline& seen) {
  const auto inner = [](Deadline& out) -> Task<> {
    (void)co_await with_deadline(Deadline(TimePoint(1h)), sees_deadline(out));
  };
  (void)co_await with_deadline(Deadline(TimePoint(5s)), inner(seen));
}
TEST(WithDeadline, the_earliest_nested_deadline_applies) {
  over_seeds([](Simulator& sim, RootScope& scope, Log&) {
    Deadline seen;
    scope.spawn(nested_deadlines(seen));
    sim.settle();
    EXPECT_EQ(seen, Deadline(TimePoint(5s)));
  });
}

}  // namespace
}  // namespace stint
