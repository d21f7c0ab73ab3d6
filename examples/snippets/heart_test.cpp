// The code that docs/library.md shows of tasks, scopes, deadlines and the simulator. Each piece is a test of what the
// text says about it.
#include "stint/budget.hpp"
#include "stint/map_bounded.hpp"
#include "stint/scope.hpp"
#include "stint/semaphore.hpp"
#include "stint/testing.hpp"

#include <gtest/gtest.h>

#include <ranges>

namespace stint {
namespace {

using namespace std::chrono_literals;

void run(Simulator& simulator, Task<> task) {
  RootScope scope(simulator);
  scope.spawn(std::move(task));
  EXPECT_TRUE(simulator.run_until([&] { return scope.idle(); }));
}

// [task]
Task<int> ask(int question) {
  co_await sleep_for(1s);
  co_return 2 * question;
}

Task<int> ask_twice() { co_return co_await ask(1) + co_await ask(2); }
// [/task]

TEST(Heart, a_task_is_awaited_where_it_is_made) {
  Simulator simulator;
  int answer = 0;
  auto program = [&]() -> Task<> { answer = co_await ask_twice(); };
  run(simulator, program());
  EXPECT_EQ(answer, 6);
  EXPECT_EQ(simulator.now(), TimePoint(2s));
}

// [result]
Task<Result<int>> parse(std::string text) {
  if (text.empty()) co_return fail(Errc::invalid, "nothing to parse");
  co_return static_cast<int>(text.size());
}

Task<Result<int>> sum(std::string a, std::string b) {
  STINT_CO_TRY(const int left, co_await parse(a));  // the value, or return the error
  STINT_CO_TRY(const int right, co_await parse(b));
  co_return left + right;
}
// [/result]

TEST(Heart, a_failure_is_a_value) {
  Simulator simulator;
  auto program = []() -> Task<> {
    EXPECT_EQ(*co_await sum("ab", "c"), 3);
    const Result<int> failed = co_await sum("ab", "");
    EXPECT_EQ(failed.error(), Errc::invalid);
    EXPECT_EQ(failed.error().describe(), "nothing to parse");
  };
  run(simulator, program());
}

// [scope]
Task<Result<>> visit(std::string place, std::vector<std::string>& seen) {
  co_await sleep_for(1s);
  seen.push_back(place);
  co_return Result<>();
}

Task<Result<>> visit_all(std::vector<std::string>& seen) {
  co_return co_await with_scope([&](Scope& scope) {
    for (const char* const place : {"Rome", "Oslo", "Lima"}) scope.spawn(visit(place, seen));
    scope.spawn([&seen, place = std::string("home")]() -> Task<> {  // the lambda lives as long as the child
      co_await sleep_for(1s);
      seen.push_back(place);
    });
  });  // ends when all four have ended; the first failure stops the rest
}
// [/scope]

TEST(Heart, a_scope_ends_when_its_children_have_ended) {
  Simulator simulator;
  std::vector<std::string> seen;
  auto program = [&]() -> Task<> { EXPECT_TRUE(co_await visit_all(seen)); };
  run(simulator, program());
  EXPECT_EQ(seen.size(), 4u);
  EXPECT_EQ(simulator.now(), TimePoint(1s)) << "at the same time";
}

// [combinators]
Task<> combine(Semaphore& slots) {
  // Both; the first failure stops the other.
  auto [one, two] = co_await all(ask(1), ask(2));
  EXPECT_EQ(one + two, 6);

  // The first to finish; the other is stopped and destroyed before the result is returned.
  auto first = co_await race(ask(3), sleep_for(1h));
  EXPECT_EQ(std::get<0>(first), 6);

  // In time, or stopped: nothing keeps running after `timed_out`. with_deadline takes an absolute time.
  Result<int> late = co_await with_timeout(500ms, ask(4));
  EXPECT_EQ(late.error(), Errc::timed_out);

  // Any number of tasks, and other awaitables mixed with tasks.
  std::vector<Task<int>> questions;
  for (int i = 1; i <= 3; ++i) questions.push_back(ask(i));
  EXPECT_EQ(co_await all(std::move(questions)), (std::vector{2, 4, 6}));
  auto both = co_await all(slots.acquire(), ask(5));  // a tuple, or the failure of the acquire
  EXPECT_EQ(std::get<1>(both.value()), 10);
}
// [/combinators]

TEST(Heart, combinators_leave_nothing_behind) {
  Simulator simulator;
  Semaphore slots("slots", 1);
  run(simulator, combine(slots));
  EXPECT_EQ(simulator.now(), TimePoint(4500ms)) << "1 s for each but the timeout, which takes half of one";
  EXPECT_EQ(slots.available(), 1);
}

// [finally]
Task<> write_to(std::vector<std::string>& file) {
  co_await sleep_for(1h);
  file.push_back("done");
}
Task<> close_file(std::vector<std::string>& file) {
  co_await sleep_for(10ms);  // may await: cancellation does not reach it, only its own deadline
  file.push_back("closed");
}

Task<> save(std::vector<std::string>& file) { co_await finally_do(write_to(file), close_file(file), 1s); }
// [/finally]

TEST(Heart, cleanup_that_awaits_runs_after_a_cancel_too) {
  Simulator simulator;
  std::vector<std::string> file;
  RootScope scope(simulator);
  scope.spawn(save(file));
  simulator.advance(1s);
  scope.cancel(Reason::user, "Ctrl-C");
  simulator.settle();
  EXPECT_EQ(file, (std::vector<std::string>{"closed"}));
}

// [map]
Task<Result<std::vector<int>>> ask_all() {
  co_return co_await map_bounded(std::views::iota(1, 6), 2, ask);  // any range; at most two at a time, results in order
}
// [/map]

TEST(Heart, map_bounded_keeps_the_order) {
  Simulator simulator;
  auto program = [&]() -> Task<> {
    const auto answers = co_await ask_all();
    EXPECT_EQ(*answers, (std::vector<int>{2, 4, 6, 8, 10}));
  };
  run(simulator, program());
  EXPECT_EQ(simulator.now(), TimePoint(3s));
}

// [cancel]
Task<> work_until_cancelled(bool& cleaned_up) {
  struct Cleanup {
    ~Cleanup() { flag = true; }
    bool& flag;
  };
  const Cleanup cleanup{cleaned_up};  // only destructors are guaranteed to run
  co_await sleep_for(1h);
  ADD_FAILURE() << "a cancelled await does not return: its frame is destroyed";
}
// [/cancel]

TEST(Heart, a_cancel_destroys_the_frames) {
  Simulator simulator;
  RootScope scope(simulator);
  bool cleaned_up = false;
  scope.spawn(work_until_cancelled(cleaned_up));
  simulator.advance(1s);
  scope.cancel(Reason::user, "no longer needed");
  simulator.run_ready();
  EXPECT_TRUE(cleaned_up);
  EXPECT_TRUE(scope.idle());
  EXPECT_EQ(simulator.now(), TimePoint(1s)) << "at once";
}

// [budget]
void spend_within_a_budget() {
  Allowance allowance;
  allowance.attempts = 3;
  allowance.cost_micros = 2'500'000;  // 2.50
  Budget budget(allowance);

  Spend estimate;
  estimate.cost_micros = 2'000'000;
  Result<Reservation> claim = budget.reserve(estimate);          // before the call: all or nothing
  EXPECT_EQ(budget.reserve(estimate).error(), Errc::exhausted);  // only 0.50 is left
  Spend actual;
  actual.cost_micros = 300'000;
  claim->settle(actual);  // after the call: the actual cost
  EXPECT_EQ(budget.remaining(TimePoint()).cost_micros, 2'200'000);
}
// [/budget]

TEST(Heart, a_budget_is_reserved_and_settled) { spend_within_a_budget(); }

// [simulator]
Task<> nag(Semaphore& door, int& knocks) {
  while (true) {
    co_await sleep_for(10min);
    if (door.try_acquire()) co_return;
    ++knocks;
  }
}

TEST(Door, opens_after_an_hour_of_knocking) {
  Semaphore door("door", 1);
  auto closed = door.try_acquire();
  Simulator simulator(42);  // the seed decides the order of what is ready
  RootScope scope(simulator);
  int knocks = 0;
  scope.spawn(nag(door, knocks));
  simulator.advance(1h);  // takes no time
  EXPECT_EQ(knocks, 6);
  closed.reset();
  simulator.settle();  // until nothing is left to do
  EXPECT_TRUE(scope.idle());
}
// [/simulator]

}  // namespace
}  // namespace stint
