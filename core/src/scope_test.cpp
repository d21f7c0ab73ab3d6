// Scopes on the simulator: ownership, join, failure, deadline, cause.
#include "stint/scope.hpp"

#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <ranges>
#include <set>

namespace stint {
namespace {

struct ScopeTest : testing::Test {
  Log log;
  Simulator sim{7};
  RootScope scope{sim};
};
using ScopeDeathTest = ScopeTest;

Task<> sleeps(Log& log, std::string name, Duration duration) {
  const Trace gone{log, name + " gone"};
  co_await sleep_for(duration);
  log.push_back(name + " done");
}
Task<Result<>> fails_after(Duration duration, std::string what) {
  co_await sleep_for(duration);
  co_return fail(Errc::failed, what);
}

TEST_F(ScopeTest, spawn_after_close_is_refused_and_running_children_continue) {
  EXPECT_TRUE(scope.spawn(sleeps(log, "a", 1s)));
  scope.close();
  EXPECT_FALSE(scope.spawn(sleeps(log, "b", 1s)));
  sim.settle();
  EXPECT_EQ(log, (Log{"a done", "a gone"}));
}

TEST_F(ScopeTest, a_child_of_a_cancelled_scope_is_never_started) {
  scope.cancel();
  EXPECT_TRUE(scope.spawn(sleeps(log, "a", 1s)));
  sim.settle();
  EXPECT_EQ(log, Log{});
  EXPECT_TRUE(scope.idle());
}

Task<> joins(Scope& other, Log& log, std::string name) {
  co_await other.join();
  log.push_back(name);
}
Task<> spawns_another(Scope& scope, Log& log) {
  co_await sleep_for(1s);
  scope.spawn(sleeps(log, "late", 5s));
}
TEST_F(ScopeTest, join_waits_also_for_children_that_are_spawned_meanwhile) {
  RootScope other(sim);
  other.spawn(spawns_another(other, log));
  scope.spawn(joins(other, log, "joined"));
  sim.settle();
  EXPECT_EQ(log, (Log{"late done", "late gone", "joined"}));
  EXPECT_EQ(sim.now(), TimePoint(6s));
}
TEST_F(ScopeTest, many_may_join_at_once_and_an_idle_scope_is_joined_at_once) {
  RootScope other(sim);
  other.spawn(sleeps(log, "a", 1s));
  for (int i = 0; i < 10; ++i) scope.spawn(joins(other, log, "joined"));
  sim.settle();
  EXPECT_EQ(std::count(log.begin(), log.end(), "joined"), 10);
  log.clear();
  scope.spawn(joins(other, log, "again"));
  sim.run_ready();
  EXPECT_EQ(log, Log{"again"});
}
TEST_F(ScopeTest, close_and_the_last_end_release_the_joiners) {
  RootScope other(sim);
  other.spawn(sleeps(log, "a", 1s));
  other.close();
  scope.spawn(joins(other, log, "joined"));
  sim.settle();
  EXPECT_EQ(log.back(), "joined");
}
TEST_F(ScopeTest, a_cancelled_join_does_not_affect_the_scope) {
  RootScope other(sim);
  other.spawn(sleeps(log, "a", 5s));
  scope.spawn(joins(other, log, "joined"));
  sim.run_ready();
  scope.cancel();
  sim.settle();
  EXPECT_EQ(log, (Log{"a done", "a gone"}));
}

// ---- with_scope ----------------------------------------------------------------------------------------------------

template <class T>
std::string describe(const Result<T>& result) {
  return result ? "ok" : std::string(to_string(result.error().code())) + ": " + std::string(result.error().what());
}

Task<> two_failures(Log& log) {
  const auto open = [&log](Scope& inner) -> Task<> {
    inner.spawn(fails_after(2s, "second"));
    inner.spawn(fails_after(1s, "first"));
    inner.spawn(sleeps(log, "sibling", 1h));
    co_return;
  };
  log.push_back(describe(co_await with_scope(open)));
}
TEST_F(ScopeTest, the_first_failure_cancels_the_siblings_and_is_returned) {
  scope.spawn(two_failures(log));
  sim.settle();
  EXPECT_EQ(log, (Log{"sibling gone", "failed: first"}));
  EXPECT_EQ(sim.now(), TimePoint(1s));
}

Task<> tolerant(Log& log) {
  ScopeOptions options;
  options.cancel_on_error = false;
  const auto open = [&log](Scope& inner) -> Task<> {
    inner.spawn(fails_after(1s, "first"));
    inner.spawn(sleeps(log, "sibling", 5s));
    co_return;
  };
  log.push_back(describe(co_await with_scope(options, open)));
}
TEST_F(ScopeTest, siblings_continue_without_cancel_on_error) {
  scope.spawn(tolerant(log));
  sim.settle();
  EXPECT_EQ(log, (Log{"sibling done", "sibling gone", "failed: first"}));
}

Task<> cancels_its_own(Log& log) {
  const auto open = [&log](Scope& inner) -> Task<int> {
    inner.spawn(sleeps(log, "child", 1h));
    co_await sleep_for(1s);
    inner.cancel(Reason::user, "had enough");
    co_await yield();
    co_return 1;
  };
  log.push_back(describe(co_await with_scope(open)));
}
TEST_F(ScopeTest, a_cancelled_scope_gives_cancelled_with_the_cause) {
  scope.spawn(cancels_its_own(log));
  sim.settle();
  EXPECT_EQ(log, (Log{"child gone", "cancelled: the scope was cancelled: had enough"}));
}

Task<> ends_before_its_children(Log& log) {
  const auto open = [&log](Scope& inner) -> Task<int> {
    inner.spawn(sleeps(log, "background", 1h));
    co_await yield();
    inner.cancel();  // the body is done with them
    co_return 42;
  };
  const Result<int> result = co_await with_scope(open);
  log.push_back(std::to_string(result.value()));
}
TEST_F(ScopeTest, a_body_that_stops_its_own_children_still_returns_its_value) {
  scope.spawn(ends_before_its_children(log));
  sim.settle();
  EXPECT_EQ(log, (Log{"background gone", "42"}));
}

Task<> with_deadline_scope(Log& log, Duration child, Duration deadline, Executor& executor) {
  ScopeOptions options;
  options.deadline = Deadline::after(executor.now(), deadline);
  const auto open = [&](Scope& inner) -> Task<> {
    EXPECT_EQ(inner.deadline(), options.deadline);
    inner.spawn(sleeps(log, "child", child));
    co_return;
  };
  log.push_back(describe(co_await with_scope(options, open)));
}
TEST_F(ScopeTest, a_scope_whose_deadline_passes_stops_its_children_and_gives_timed_out) {
  scope.spawn(with_deadline_scope(log, 1h, 3s, sim));
  sim.settle();
  EXPECT_EQ(log, (Log{"child gone", "timed out: stopped at the scope's deadline"}));
  EXPECT_EQ(sim.now(), TimePoint(3s));
}
TEST_F(ScopeTest, a_scope_that_ends_in_time_is_not_timed_out) {
  scope.spawn(with_deadline_scope(log, 2s, 3s, sim));
  sim.settle();
  EXPECT_EQ(log.back(), "ok");
}

Task<> shortens_and_tries_to_extend(Log& log, Executor& executor) {
  ScopeOptions outer;
  outer.deadline = Deadline(TimePoint(5s));
  const auto open = [&](Scope& scope) -> Task<> {
    ScopeOptions later;
    later.deadline = Deadline(TimePoint(1h));
    const auto inner = [&](Scope& beneath) -> Task<> {
      EXPECT_EQ(beneath.deadline(), Deadline(TimePoint(5s))) << "never extended";
      co_return;
    };
    (void)co_await with_scope(later, inner);
    EXPECT_EQ(scope.deadline(), Deadline(TimePoint(5s))) << "a child's deadline is not its parent's";
    log.push_back("checked");
  };
  (void)co_await with_scope(outer, open);
  EXPECT_EQ(executor.now(), TimePoint(0s));
}
TEST_F(ScopeTest, a_child_deadline_never_exceeds_its_parents) {
  scope.spawn(shortens_and_tries_to_extend(log, sim));
  sim.settle();
  EXPECT_EQ(log, Log{"checked"});
}

Task<> throws_in_open() {
  const auto open = [](Scope&) -> Task<> { throw std::logic_error("not a coroutine"); };
  (void)co_await with_scope(open);
}
TEST_F(ScopeTest, an_exception_thrown_by_open_itself_propagates) {
  scope.spawn(throws_in_open());
  sim.settle();
  EXPECT_THROW(std::rethrow_exception(scope.exception()), std::logic_error);
}

TEST_F(ScopeTest, a_cause_is_visible_in_descendants) {
  std::string seen;
  const auto watch = [](std::string& text) -> Task<> {
    const auto open = [&text](Scope& inner) -> Task<> {
      struct Look {
        ~Look() { text = scope.cause(); }
        std::string& text;
        Scope& scope;
      } const look{text, inner};
      co_await sleep_for(1h);
    };
    (void)co_await with_scope(open);
  };
  scope.spawn(watch(seen));
  sim.run_ready();
  scope.cancel(Reason::shutdown, "host is going down");
  sim.settle();
  EXPECT_EQ(seen, "host is going down");
  EXPECT_EQ(scope.reason(), Reason::shutdown);
}

TEST_F(ScopeTest, a_root_scope_may_have_a_deadline) {
  ScopeOptions options;
  options.deadline = Deadline(TimePoint(3s));
  RootScope root(sim, options);
  root.spawn(sleeps(log, "child", 1h));
  sim.settle();
  EXPECT_EQ(log, Log{"child gone"});
  EXPECT_EQ(root.reason(), Reason::deadline);
  EXPECT_EQ(sim.now(), TimePoint(3s));
}

TEST_F(ScopeTest, hundred_thousand_children_end_and_are_cancelled_without_recursion) {
  for (int i = 0; i < 100'000; ++i) scope.spawn(sleeps(log, "", 1h));
  sim.run_ready();
  scope.cancel();
  sim.settle();
  EXPECT_TRUE(scope.idle());
  EXPECT_EQ(log.size(), 100'000u);
}

Task<> opens_a_root(Executor& executor) {
  const RootScope local(executor);
  co_return;
}
TEST_F(ScopeDeathTest, a_root_scope_can_not_be_a_coroutines_local) {
  scope.spawn(opens_a_root(sim));
  EXPECT_DEATH(sim.settle(), "with_scope");
  scope.cancel();
  sim.settle();
}
TEST_F(ScopeDeathTest, a_root_scope_must_be_joined_before_destruction) {
  EXPECT_DEATH(
      {
        RootScope left(sim);
        left.spawn(sleeps(log, "a", 1h));
      },
      "idle");
}

// ---- map_bounded, with_permit --------------------------------------------------------------------------------------

struct Gauge {
  int now = 0, most = 0;
};
Task<int> squares(Gauge& gauge, int value) {
  gauge.most = std::max(gauge.most, ++gauge.now);
  co_await sleep_for(std::chrono::seconds(10 - value % 10));  // later items end earlier
  --gauge.now;
  co_return value* value;
}
Task<> maps(std::size_t count, std::size_t max, Gauge& gauge, std::vector<int>& results) {
  std::vector<int> items;
  for (std::size_t i = 0; i < count; ++i) items.push_back(static_cast<int>(i));
  const auto square = [&gauge](int value) { return squares(gauge, value); };
  auto mapped = co_await map_bounded(items, max, square);
  results = std::move(mapped).value();
}
TEST_F(ScopeTest, map_bounded_keeps_the_order_and_the_bound) {
  Gauge gauge;
  std::vector<int> results;
  scope.spawn(maps(100, 7, gauge, results));
  sim.settle();
  EXPECT_EQ(gauge.most, 7);
  ASSERT_EQ(results.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(results[static_cast<std::size_t>(i)], i * i);
}
TEST_F(ScopeTest, map_bounded_of_no_items_returns_no_results) {
  Gauge gauge;
  std::vector<int> results{1};
  scope.spawn(maps(0, 7, gauge, results));
  sim.settle();
  EXPECT_TRUE(results.empty());
}

Task<Result<int>> fails_at_three(int& started, int value) {
  ++started;
  co_await sleep_for(1s);
  if (value == 3) co_return fail(Errc::unavailable, "three");
  co_return value;
}
Task<> maps_until_failure(std::size_t max, int& started, Log& log) {
  const auto fetch = [&started](int value) { return fails_at_three(started, value); };
  std::vector<int> items{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto mapped = co_await map_bounded(items, max, fetch);
  log.push_back(describe(mapped));
}
TEST_F(ScopeTest, map_bounded_stops_at_the_first_failure) {
  int started = 0;
  scope.spawn(maps_until_failure(2, started, log));
  sim.settle();
  EXPECT_EQ(log, Log{"unavailable: three"});
  EXPECT_LE(started, 6) << "what was not begun is not begun any more";
}
TEST_F(ScopeTest, map_bounded_by_zero_is_an_error_not_a_hang) {
  int started = 0;
  scope.spawn(maps_until_failure(0, started, log));
  sim.settle();
  EXPECT_EQ(started, 0);
  EXPECT_EQ(log, Log{"invalid: map_bounded: max must be at least 1"});
}

Task<int> one(Semaphore& semaphore) {
  EXPECT_EQ(semaphore.available(), 0);
  co_return 1;
}
Task<> under_permit(Semaphore& semaphore, Log& log) {
  ScopeOptions options;
  options.deadline = Deadline(TimePoint(2s));
  const auto open = [&](Scope&) -> Task<Result<int>> {
    const auto work = [&semaphore] { return one(semaphore); };
    co_return co_await with_permit(semaphore, work);
  };
  const Result<int> result = co_await with_scope(options, open);
  log.push_back(describe(result));
}
TEST_F(ScopeTest, with_permit_runs_its_work_under_the_permit_and_returns_it) {
  Semaphore semaphore("slots", 1);
  scope.spawn(under_permit(semaphore, log));
  sim.settle();
  EXPECT_EQ(log, Log{"ok"});
  EXPECT_EQ(semaphore.available(), 1);
}
TEST_F(ScopeTest, with_permit_that_waits_past_the_deadline_does_not_start) {
  Semaphore semaphore("slots", 1);
  const auto held = semaphore.try_acquire();
  scope.spawn(under_permit(semaphore, log));
  sim.settle();
  ASSERT_EQ(log.size(), 1u);
  EXPECT_TRUE(log[0].starts_with("timed out")) << log[0];
}

TEST_F(ScopeTest, map_bounded_takes_any_range) {
  const auto doubled = [](int value) -> Task<int> {
    co_await yield();
    co_return 2 * value;
  };
  const auto takes_owned = [](std::unique_ptr<int> value) -> Task<int> { co_return *value; };
  const auto body = [&]() -> Task<> {
    const auto of_iota = co_await map_bounded(std::views::iota(1, 4), 2, doubled);
    EXPECT_EQ(*of_iota, (std::vector{2, 4, 6}));
    const std::set<int> numbers{3, 1, 2};
    const auto of_set = co_await map_bounded(numbers, 2, doubled);
    EXPECT_EQ(*of_set, (std::vector{2, 4, 6}));
    const auto is_odd = [](int value) { return value % 2 != 0; };
    const auto of_filter = co_await map_bounded(numbers | std::views::filter(is_odd), 9, doubled);
    EXPECT_EQ(*of_filter, (std::vector{2, 6}));
    std::vector<std::unique_ptr<int>> owned;
    owned.push_back(std::make_unique<int>(7));
    const auto of_moved = co_await map_bounded(std::move(owned), 1, takes_owned);
    EXPECT_EQ(*of_moved, std::vector{7});
    log.push_back("done");
  };
  scope.spawn(body());
  sim.settle();
  EXPECT_EQ(log, Log{"done"});
}

}  // namespace
}  // namespace stint
