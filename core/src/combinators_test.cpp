// race, all, select, shield and the rest, on the simulator. Tests about order run over many seeds.
#include "stint/combinators.hpp"

#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

namespace stint {
namespace {

/// One order of events may hide what another shows.
template <class Body>
void over_seeds(Body body) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Log log;
    Simulator sim(seed);
    RootScope scope(sim);
    body(sim, scope, log);
    sim.settle();  // nothing that is gone may still be queued
    ASSERT_TRUE(scope.idle());
  }
}

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
TEST(Race, of_three_with_void_gives_the_first_after_the_others_are_gone) {
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
TEST(Race, an_exception_counts_as_a_finish_and_is_rethrown_when_the_others_are_gone) {
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
TEST(All, gives_everything_in_the_order_asked_for) {
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
TEST(All, the_first_failure_stops_the_others_and_is_the_answer) {
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
TEST(All, an_exception_stops_the_others_and_passes_on) {
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
TEST(All, of_results_gives_a_result_of_the_values) {
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
TEST_P(SelectTest, takes_the_permit_if_it_comes_first) {
  scope.spawn(selects(semaphore, other, log));
  sim.settle();
  EXPECT_EQ(log, Log{"acquired"});
  EXPECT_EQ(semaphore.available(), 1);
  EXPECT_EQ(sim.now(), TimePoint(0s)) << "the timer was withdrawn";
}
TEST_P(SelectTest, withdraws_from_the_line_when_time_is_up) {
  const auto held = semaphore.try_acquire();
  scope.spawn(selects(semaphore, other, log));
  sim.settle();
  EXPECT_EQ(log, Log{"after"});
  EXPECT_EQ(semaphore.waiting(), 0u);
}
TEST_P(SelectTest, hears_of_a_cancel_elsewhere_and_goes_on) {
  const auto held = semaphore.try_acquire();
  scope.spawn(selects(semaphore, other, log));
  sim.run_ready();
  other.cancel();
  sim.settle();
  EXPECT_EQ(log, Log{"cancelled"});
  EXPECT_EQ(sim.now(), TimePoint(0s));
}
TEST_P(SelectTest, is_stopped_by_its_own_cancel_and_leaves_nothing) {
  const auto held = semaphore.try_acquire();
  scope.spawn(selects(semaphore, other, log));
  sim.run_ready();
  scope.cancel();
  sim.run_ready();
  EXPECT_EQ(log, Log{});
  EXPECT_TRUE(scope.idle());
  EXPECT_EQ(semaphore.waiting(), 0u);
}
TEST_P(SelectTest, gives_back_a_permit_that_came_with_a_cancel) {
  auto held = semaphore.try_acquire();
  scope.spawn(selects(semaphore, other, log));
  sim.run_ready();
  held.reset();
  other.cancel();
  sim.settle();
  EXPECT_EQ(log.size(), 1u);
  EXPECT_EQ(semaphore.available(), 1);
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
TEST(Shield, an_acquire_under_it_ignores_a_cancel_until_granted_and_then_stops) {
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
TEST(WithDeadline, does_not_start_what_has_no_time_left) {
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
TEST(WithDeadline, of_a_result_is_a_result_not_a_result_of_a_result) {
  over_seeds([](Simulator& sim, RootScope& scope, Log& log) {
    scope.spawn(flattens(log));
    sim.settle();
    EXPECT_EQ(log, (Log{"gone -1", "negative"}));
  });
}
Task<> sees_deadline(Deadline& seen) {
  seen = (co_await current_token()).deadline();
  co_return;
}
Task<> nested_deadlines(Deadline& seen) {
  const auto inner = [](Deadline& out) -> Task<> {
    (void)co_await with_deadline(Deadline(TimePoint(1h)), sees_deadline(out));
  };
  (void)co_await with_deadline(Deadline(TimePoint(5s)), inner(seen));
}
TEST(WithDeadline, beneath_it_the_earliest_deadline_counts) {
  over_seeds([](Simulator& sim, RootScope& scope, Log&) {
    Deadline seen;
    scope.spawn(nested_deadlines(seen));
    sim.settle();
    EXPECT_EQ(seen, Deadline(TimePoint(5s)));
  });
}

}  // namespace
}  // namespace stint
