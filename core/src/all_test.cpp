// `all` of vectors, combinators of awaitables that are not tasks, and timeouts that count from the await; on the
// simulator.
#include "stint/all.hpp"

#include "stint/combinators.hpp"
#include "stint/queue.hpp"
#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace stint {
namespace {

struct AllTest : testing::TestWithParam<std::uint64_t> {
  Log log;
  Simulator sim{GetParam()};
  RootScope scope{sim};
};
INSTANTIATE_TEST_SUITE_P(Seeds, AllTest, testing::Range<std::uint64_t>(0, 8));

Task<int> number(int value) {
  co_await sleep_for(std::chrono::seconds(10 - value));  // later ones end earlier
  co_return value;
}
Task<Result<int>> maybe(Log& log, int value) {
  const Trace trace{log, "gone " + std::to_string(value)};
  co_await sleep_for(std::chrono::seconds(value < 0 ? 1 : value));
  if (value < 0) co_return fail(Errc::failed, "negative");
  co_return value;
}
Task<> counts(int& count) {
  co_await yield();
  ++count;
}
Task<Result<>> checks(bool good) {
  co_await yield();
  if (!good) co_return fail(Errc::denied, "bad");
  co_return Result<>();
}
Task<int> throws_on_one(int value) {
  co_await yield();
  if (value == 1) throw std::runtime_error("boom");
  co_return value;
}

TEST_P(AllTest, of_a_vector_returns_the_values_in_order) {
  const auto body = [&]() -> Task<> {
    std::vector<Task<int>> tasks;
    for (int i = 0; i < 10; ++i) tasks.push_back(number(i));
    const std::vector<int> values = co_await all(std::move(tasks));
    EXPECT_EQ(values, (std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    log.push_back("done");
  };
  scope.spawn(body());
  sim.settle();
  EXPECT_EQ(log, Log{"done"});
  EXPECT_EQ(sim.now(), TimePoint(10s)) << "at once, not one after another";
}

TEST_P(AllTest, of_a_vector_stops_the_others_at_the_first_failure) {
  const auto body = [&]() -> Task<> {
    std::vector<Task<Result<int>>> tasks;
    for (const int value : {5, -1, 7}) tasks.push_back(maybe(log, value));
    const Result<std::vector<int>> values = co_await all(std::move(tasks));
    log.push_back(std::string(values.error().what()));
  };
  scope.spawn(body());
  sim.settle();
  ASSERT_EQ(log.size(), 4u);
  EXPECT_EQ(log[3], "negative") << "and the others are gone before it is seen";
  EXPECT_EQ(sim.now(), TimePoint(1s));
}

TEST_P(AllTest, of_a_vector_of_void_tasks) {
  int count = 0;
  const auto body = [&]() -> Task<> {
    std::vector<Task<>> tasks;
    for (int i = 0; i < 3; ++i) tasks.push_back(counts(count));
    co_await all(std::move(tasks));
    std::vector<Task<Result<>>> good, bad;
    good.push_back(checks(true));
    const Result<> first = co_await all(std::move(good));
    EXPECT_TRUE(first);
    bad.push_back(checks(true));
    bad.push_back(checks(false));
    const Result<> second = co_await all(std::move(bad));
    EXPECT_EQ(second.error(), Errc::denied);
    log.push_back("done");
  };
  scope.spawn(body());
  sim.settle();
  EXPECT_EQ(log, Log{"done"});
  EXPECT_EQ(count, 3);
}

TEST_P(AllTest, of_an_empty_vector_completes_at_once) {
  const auto body = [&]() -> Task<> {
    EXPECT_TRUE((co_await all(std::vector<Task<int>>())).empty());
    EXPECT_TRUE(co_await all(std::vector<Task<Result<>>>()));
    log.push_back("done");
  };
  scope.spawn(body());
  sim.settle();
  EXPECT_EQ(log, Log{"done"});
  EXPECT_EQ(sim.now(), TimePoint());
}

TEST_P(AllTest, of_a_vector_rethrows_the_first_exception) {
  const auto body = [&]() -> Task<> {
    std::vector<Task<int>> tasks;
    for (int i = 0; i < 3; ++i) tasks.push_back(throws_on_one(i));
    try {
      (void)co_await all(std::move(tasks));
    } catch (const std::runtime_error& error) {
      log.push_back(error.what());
    }
  };
  scope.spawn(body());
  sim.settle();
  EXPECT_EQ(log, Log{"boom"});
}

TEST_P(AllTest, of_a_vector_is_stopped_with_what_awaits_it) {
  const auto body = [&]() -> Task<> {
    const Trace trace{log, "awaiter"};
    std::vector<Task<Result<int>>> tasks;
    for (const int value : {5, 6}) tasks.push_back(maybe(log, value));
    (void)co_await all(std::move(tasks));
    ADD_FAILURE();
  };
  scope.spawn(body());
  sim.advance(1s);
  scope.cancel();
  sim.settle();
  ASSERT_EQ(log.size(), 3u);
  EXPECT_EQ(log[2], "awaiter");
}

// ---- what is no task -----------------------------------------------------------------------------------------------

TEST_P(AllTest, accepts_leaves_and_tasks_together) {
  Semaphore slots("slots", 1);
  Queue<int> queue("items", 1);
  const auto body = [&]() -> Task<> {
    auto both = co_await all(slots.acquire(), sleep_for(2s), number(9));
    EXPECT_TRUE(both);
    EXPECT_EQ(std::get<0>(*both).units(), 1u);
    EXPECT_EQ(std::get<2>(*both), 9);
    const auto first = co_await race(queue.pop(), sleep_for(1s));
    EXPECT_EQ(first.index(), 1u);
    log.push_back("done");
  };
  scope.spawn(body());
  sim.settle();
  EXPECT_EQ(log, Log{"done"});
  EXPECT_EQ(sim.now(), TimePoint(3s));
  EXPECT_EQ(slots.available(), 1);
  EXPECT_EQ(queue.waiting_consumers(), 0u);
}

// ---- with_timeout --------------------------------------------------------------------------------------------------

TEST_P(AllTest, a_timeout_counts_from_the_await) {
  Queue<int> queue("items", 1);
  const auto body = [&]() -> Task<> {
    auto limited = with_timeout(2s, number(5));  // takes 5 s
    co_await sleep_for(1h);
    const TimePoint since = sim.now();
    const Result<int> late = co_await limited;
    EXPECT_EQ(late.error(), Errc::timed_out);
    EXPECT_EQ(sim.now() - since, 2s);
    const Result<int> in_time = co_await with_timeout(5s, number(8));
    EXPECT_EQ(in_time.value(), 8);
    const Result<int> nothing = co_await with_timeout(3s, queue.pop());
    EXPECT_EQ(nothing.error(), Errc::timed_out);
    const Result<int> not_started = co_await with_timeout(0s, number(8));
    EXPECT_EQ(not_started.error(), Errc::timed_out);
    const Result<int> for_ever = co_await with_timeout(Duration::max(), number(8));
    EXPECT_TRUE(for_ever);
    log.push_back("done");
  };
  scope.spawn(body());
  sim.settle();
  EXPECT_EQ(log, Log{"done"});
  EXPECT_EQ(sim.now(), TimePoint(1h + 2s + 2s + 3s + 2s));
}

TEST_P(AllTest, acquire_for_times_out_and_takes_free_units) {
  Semaphore slots("slots", 2);
  const auto body = [&]() -> Task<> {
    auto wait = slots.acquire_for(5s, 2);
    co_await sleep_for(1h);
    auto held = co_await slots.acquire({.units = 2, .priority = 1, .label = "holder"});
    EXPECT_TRUE(held);
    const TimePoint since = sim.now();
    const Result<Permit> late = co_await wait;
    EXPECT_EQ(late.error(), Errc::timed_out);
    EXPECT_EQ(sim.now() - since, 5s);
    EXPECT_EQ((co_await slots.acquire_for(0s)).error(), Errc::timed_out);
    held->release();
    EXPECT_TRUE(co_await slots.acquire_for(0s)) << "free units are granted";
    EXPECT_TRUE(co_await slots.acquire_for(Duration::max()));
    log.push_back("done");
  };
  scope.spawn(body());
  sim.settle();
  EXPECT_EQ(log, Log{"done"});
  EXPECT_EQ(slots.available(), 2);
  EXPECT_EQ(slots.waiting(), 0u);
}

TEST_P(AllTest, options_are_written_in_place) {
  Semaphore slots("slots", 4, {.track_holders = true, .clock = &sim});
  const auto body = [&]() -> Task<> {
    const auto permit = co_await slots.acquire({.units = 2, .label = "train"}, Deadline(TimePoint(1s)));
    EXPECT_EQ(permit->units(), 2u);
    EXPECT_EQ(slots.holders().at(0).label, "train");
    const Result<> ended =
        co_await with_scope({.deadline = Deadline(TimePoint(2s))}, [](Scope&) -> Task<> { co_await sleep_for(1h); });
    EXPECT_EQ(ended.error(), Errc::timed_out);
    log.push_back("done");
  };
  scope.spawn(body());
  sim.settle();
  EXPECT_EQ(log, Log{"done"});
}

// ---- callables -----------------------------------------------------------------------------------------------------

TEST_P(AllTest, a_spawned_callable_lives_as_long_as_its_child) {
  {
    Trace trace{log, "captures gone"};
    auto owned = std::make_unique<int>(42);
    scope.spawn([this, value = std::move(owned)]() -> Task<> {
      co_await sleep_for(1s);
      log.push_back("saw " + std::to_string(*value));
    });
    scope.spawn([this, text = std::string(100, 'x')]() -> Task<Result<>> {
      co_await sleep_for(2s);
      log.push_back("text of " + std::to_string(text.size()));
      co_return fail(Errc::failed, "on purpose");
    });
  }
  sim.settle();
  EXPECT_EQ(log, (Log{"captures gone", "saw 42", "text of 100"}));
  EXPECT_EQ(scope.error()->what(), "on purpose");
}

TEST_P(AllTest, a_callable_is_not_called_if_its_child_never_starts) {
  int calls = 0;
  const auto call = [&]() -> Task<> {
    ++calls;
    return []() -> Task<> { co_return; }();
  };
  scope.cancel();
  EXPECT_TRUE(scope.spawn(call));
  sim.settle();
  scope.close();
  EXPECT_FALSE(scope.spawn(call));
  sim.settle();
  EXPECT_EQ(calls, 0);
}

TEST_P(AllTest, a_cancel_destroys_the_captures_after_the_frame) {
  struct Mark {
    Mark(Log& where, std::string what) : log(&where), name(std::move(what)) {}
    Mark(Mark&& other) noexcept : log(std::exchange(other.log, nullptr)), name(std::move(other.name)) {}
    ~Mark() {
      if (log != nullptr) log->push_back(name);
    }
    Log* log;
    std::string name;
  };
  scope.spawn([this, mark = Mark(log, "captures")]() -> Task<> {
    const Mark frame(log, "frame");
    co_await sleep_for(1h);
  });
  sim.run_ready();
  scope.cancel();
  sim.settle();
  EXPECT_EQ(log, (Log{"frame", "captures"}));
}

TEST_P(AllTest, a_scope_is_opened_by_a_plain_function) {
  int count = 0;
  const auto body = [&]() -> Task<> {
    const Result<> good = co_await with_scope([&](Scope& inner) {
      for (int i = 0; i < 3; ++i) inner.spawn(counts(count));
    });
    EXPECT_TRUE(good);
    const Result<> bad = co_await with_scope([&](Scope& inner) { inner.spawn(checks(false)); });
    EXPECT_EQ(bad.error(), Errc::denied);
    log.push_back("done");
  };
  scope.spawn(body());
  sim.settle();
  EXPECT_EQ(log, Log{"done"});
  EXPECT_EQ(count, 3);
}

}  // namespace
}  // namespace stint
