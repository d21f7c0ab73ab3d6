// Waits that end by cancellation or a deadline.
#include "semaphore_test_support.hpp"

#include <algorithm>
#include <malloc.h>
#include <pthread.h>
#include <random>
#include <set>

namespace stint {
namespace {

bool contains(const Log& log, const std::string& entry) { return std::ranges::find(log, entry) != log.end(); }
bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

Task<> cancel_at(Line& line, std::string name, TimePoint when) {
  co_await sleep_until(when);
  line.cancel(name);
}

// ---- Cancelled -----------------------------------------------------------------------------------------------------

Task<> acquires_after_its_own_cancel(Line& line, int kind) {
  line.cancel("a");
  AcquireOptions options;
  if (kind == 0) (void)co_await line.semaphore.acquire();
  if (kind == 1) (void)co_await line.semaphore.acquire_until(TimePoint(1h));
  if (kind == 2) (void)co_await line.semaphore.acquire(options);
  line.log.push_back("ran on");
}
TEST(SemaphoreCancel, a_cancelled_scope_gets_nothing_even_if_units_are_free) {
  for (const int kind : {0, 1, 2}) {
    Line line(1);
    line.start("a", acquires_after_its_own_cancel(line, kind));
    EXPECT_EQ(line.log, Log{});
    EXPECT_TRUE(line.scopes["a"]->idle());
    EXPECT_EQ(line.semaphore.available(), 1);
  }
}
TEST(SemaphoreCancel, a_cancelled_scope_never_enters_the_line) {
  Line line(1);
  auto held = line.semaphore.try_acquire();
  auto& scope = line.scopes["a"] = std::make_unique<RootScope>(line.sim);
  scope->spawn(acquires_after_its_own_cancel(line, 0));
  std::size_t longest = 0;
  while (line.sim.step()) longest = std::max(longest, line.semaphore.waiting());
  EXPECT_EQ(longest, 0u);
}

TEST(SemaphoreCancel, a_cancelled_waiter_leaves_the_line_at_once) {
  Line line(1);
  for (const char* name : {"holder", "a", "b"}) line.enter(name);
  line.cancel("a");
  EXPECT_EQ(line.semaphore.waiting(), 1u) << "before anything ran";
  EXPECT_EQ(line.semaphore.waiters().size(), 1u);
  line.run();
  EXPECT_EQ(line.log, (Log{"holder", "a: stopped"}));
}

TEST(SemaphoreCancel, the_order_is_kept_whichever_waiter_leaves) {
  const Log names{"a", "b", "c", "d"};
  for (std::size_t leaves = 0; leaves < names.size(); ++leaves) {
    Line line(1);
    line.enter("holder");
    for (const auto& name : names) line.enter(name);
    line.cancel(names[leaves]);
    line.run();
    Log wanted = names;
    wanted.erase(wanted.begin() + static_cast<std::ptrdiff_t>(leaves));
    EXPECT_EQ(line.serve_all_after("holder"), wanted) << "without " << names[leaves];
  }
}
TEST(SemaphoreCancel, the_only_waiter_may_leave) {
  Line line(1);
  line.enter("holder");
  line.enter("only");
  line.cancel("only");
  line.run();
  line.give_back("holder");
  EXPECT_TRUE(line.semaphore.try_acquire().has_value()) << "the fast path is open again";
}

TEST(SemaphoreCancel, a_hundred_thousand_leave_one_at_a_time_from_anywhere) {
  const int count = rounds(100'000);  // a walk along the line for each would take minutes
  Line line(1);
  auto held = line.semaphore.try_acquire();
  const auto acquire = [](Semaphore& semaphore) -> Task<> { (void)co_await semaphore.acquire(); };
  std::vector<std::unique_ptr<RootScope>> scopes;
  for (int i = 0; i < count; ++i) {
    scopes.push_back(std::make_unique<RootScope>(line.sim));
    scopes.back()->spawn(acquire(line.semaphore));
  }
  line.run();
  EXPECT_EQ(line.semaphore.waiting(), static_cast<std::size_t>(count));
  std::ranges::shuffle(scopes, line.sim.random());
  for (auto& scope : scopes) scope->cancel();
  EXPECT_EQ(line.semaphore.waiting(), 0u);
  line.run();
}

// ---- Blocked waiters -----------------------------------------------------------------------------------------------

TEST(SemaphoreCancel, cancelled_head_wakes_waiters_behind_it) {
  Line line(3);
  auto held = line.semaphore.try_acquire(1);
  line.enter("big", 3);
  line.enter("small 1");
  line.enter("small 2");
  line.enter("small 3");
  line.cancel("big");
  line.run();
  EXPECT_TRUE(contains(line.log, "small 1"));
  EXPECT_TRUE(contains(line.log, "small 2"));
  EXPECT_FALSE(contains(line.log, "small 3"));
}
TEST(SemaphoreCancel, timed_out_head_wakes_waiters_behind_it) {
  Line line(2);
  auto held = line.semaphore.try_acquire(1);
  line.enter_until("big", TimePoint(2s), 2);
  line.enter("small", 1);
  line.sim.advance(2s);
  EXPECT_EQ(std::set<std::string>(line.log.begin(), line.log.end()),
            (std::set<std::string>{"big: timed out", "small"}));
}
TEST(SemaphoreCancel, a_head_destroyed_with_its_executor_wakes_waiters_behind_it) {
  Line line(2);
  auto held = line.semaphore.try_acquire(1);
  Log log;
  auto other = std::make_unique<Simulator>();
  RootScope scope(*other);
  scope.spawn(hold(line.semaphore, log, "big", 2));
  other->run_ready();
  line.enter("small", 1);
  EXPECT_EQ(line.semaphore.waiting(), 2u);
  other.reset();
  line.run();
  EXPECT_EQ(line.log, Log{"small"});
}
TEST(SemaphoreCancel, a_cancelled_head_of_a_higher_priority_wakes_waiters_behind_it) {
  Line line(2);
  auto held = line.semaphore.try_acquire(1);
  line.enter_as("big", 1, 2);
  line.enter("small", 1);
  line.cancel("big");
  line.run();
  EXPECT_TRUE(contains(line.log, "small"));
}
TEST(SemaphoreCancel, a_waiter_that_is_not_the_head_leaves_without_waking_others) {
  Line line(2);
  auto held = line.semaphore.try_acquire(1);
  line.enter("big", 2);
  line.enter("small 1");
  line.enter("small 2");
  line.cancel("small 1");
  line.run();
  EXPECT_EQ(line.log, Log{"small 1: stopped"});
}

// ---- Cancel against grant ------------------------------------------------------------------------------------------

TEST(SemaphoreCancel, a_cancel_between_grant_and_resume_passes_the_permit_on) {
  for_seeds(20, [](std::uint64_t seed) {
    Line line(2, seed);
    line.permits["held"] = std::move(*line.semaphore.try_acquire(2));
    line.enter("first", 2);
    line.enter("second", 2);
    line.give_back("held");
    EXPECT_EQ(line.semaphore.waiting(), 1u);  // granted, not yet resumed
    line.cancel("first");
    line.run();
    EXPECT_EQ(line.log, (Log{"first: stopped", "second"}));
  });
}
TEST(SemaphoreCancel, a_cancel_before_enough_is_free_wins) {
  Line line(2);
  line.permits["held"] = std::move(*line.semaphore.try_acquire(2));
  line.enter("a", 2);
  line.cancel("a");
  line.give_back("held");
  EXPECT_EQ(line.semaphore.available(), 2) << "all of it is back, before anything ran";
  line.run();
  EXPECT_EQ(line.log, Log{"a: stopped"});
}
TEST(SemaphoreCancel, units_granted_to_several_cancelled_waiters_go_to_one_that_needs_them_all) {
  for_seeds(20, [](std::uint64_t seed) {
    Line line(3, seed);
    line.permits["held"] = std::move(*line.semaphore.try_acquire(3));
    for (const char* name : {"a", "b", "c"}) line.enter(name);
    line.enter("all", 3);
    line.give_back("held");
    for (const char* name : {"a", "b", "c"}) line.cancel(name);
    line.run();
    EXPECT_EQ(line.news().back(), "all");
  });
}
TEST(SemaphoreCancel, a_cancelled_holder_returns_the_permits_in_its_frames) {
  Line line(1);
  line.start("holder", hold(line.semaphore, line.log, "holder"));
  line.enter("next");
  line.cancel("holder");
  line.run();
  EXPECT_EQ(line.log, (Log{"holder+", "next"}));
}
Task<> acquire_twice(Line& line) {
  const auto one = co_await line.semaphore.acquire(1);
  const auto two = co_await line.semaphore.acquire(2);
}
TEST(SemaphoreCancel, a_cancelled_frame_returns_its_permit_and_withdraws_its_wait) {
  for (const bool granted : {false, true}) {
    Line line(3);
    line.permits["held"] = std::move(*line.semaphore.try_acquire(2));
    line.start("a", acquire_twice(line));
    line.enter("all", 3);
    if (granted) line.give_back("held");
    line.cancel("a");
    line.run();
    if (!granted) line.give_back("held");
    line.run();
    EXPECT_EQ(line.log, Log{"all"});
  }
}

TEST(SemaphoreCancel, a_simultaneous_cancel_and_deadline_have_one_outcome) {
  std::set<std::string> outcomes;
  for_seeds(100, [&outcomes](std::uint64_t seed) {
    Line line(1, seed);
    auto held = line.semaphore.try_acquire();
    line.enter_until("a", TimePoint(2s));
    line.start("canceller", cancel_at(line, "a", TimePoint(2s)));
    line.sim.advance(3s);
    ASSERT_EQ(line.log.size(), 1u);
    outcomes.insert(line.log[0]);
  });
  EXPECT_EQ(outcomes, (std::set<std::string>{"a: stopped", "a: timed out"}));
}
TEST(SemaphoreCancel, a_cancel_wins_over_an_undelivered_close) {
  Line line(1);
  line.enter("holder");
  line.enter("a");
  line.semaphore.close();
  line.cancel("a");
  line.run();
  EXPECT_EQ(line.log, (Log{"holder", "a: stopped"}));
}
TEST(SemaphoreCancel, a_close_does_not_reach_cancelled_waiters) {
  Line line(1);
  for (const char* name : {"holder", "a", "b"}) line.enter(name);
  line.cancel("a");
  line.semaphore.close();
  line.run();
  EXPECT_EQ(std::set<std::string>(line.log.begin(), line.log.end()),
            (std::set<std::string>{"holder", "a: stopped", "b: closed"}));
}

TEST(SemaphoreCancelDeathTest, a_scope_with_a_waiter_can_not_be_destroyed) {
  EXPECT_DEATH(
      {
        Line line(0);
        line.enter("a");
        line.scopes.clear();
      },
      "idle");
}
TEST(SemaphoreCancel, an_executor_may_be_destroyed_right_after_a_cancel) {
  Semaphore semaphore("slots", 2);
  Log log;
  auto held = semaphore.try_acquire(2);
  auto sim = std::make_unique<Simulator>();
  RootScope granted(*sim), waiting(*sim);
  granted.spawn(hold(semaphore, log, "granted", 2));
  sim->run_ready();
  waiting.spawn(hold(semaphore, log, "waiting"));
  sim->run_ready();
  held.reset();
  granted.cancel();
  waiting.cancel();
  sim.reset();
  EXPECT_EQ(log, Log{});
  EXPECT_EQ(semaphore.available(), 2);
}

Task<> acquire_and_cancel(Line& line, std::string self, std::string other) {
  const auto permit = co_await line.semaphore.acquire();
  line.cancel(other);
  line.cancel(self);
  line.log.push_back("runs to its next wait");
  co_await yield();
  line.log.push_back("ran on");
}
TEST(SemaphoreCancel, a_resumed_waiter_may_cancel_itself_and_the_next) {
  Line line(1);
  line.enter("holder");
  line.start("a", acquire_and_cancel(line, "a", "b"));
  line.enter("b");
  line.enter("c");
  line.news();
  line.give_back("holder");
  line.run();
  const Log news = line.news();
  EXPECT_EQ(news.front(), "runs to its next wait");
  EXPECT_TRUE(contains(news, "b: stopped"));
  EXPECT_TRUE(contains(news, "c"));
  EXPECT_FALSE(contains(news, "ran on"));
}

TEST(SemaphoreCancel, a_scope_of_waiters_is_cancelled_while_one_has_an_undelivered_grant) {
  for_seeds(20, [](std::uint64_t seed) {
    Line line(1, seed);
    line.permits["held"] = std::move(*line.semaphore.try_acquire());
    auto& scope = line.scopes["all"] = std::make_unique<RootScope>(line.sim);
    for (int i = 0; i < 10; ++i) scope->spawn(hold(line.semaphore, line.log, "?"));
    line.run();
    line.enter("last");
    line.give_back("held");
    scope->cancel();
    line.run();
    EXPECT_EQ(line.log, Log{"last"});
  });
}

// ---- Shielded, and why ---------------------------------------------------------------------------------------------

Task<> acquire_shielded(Line& line) {
  const auto permit = co_await shield(awaited(line.semaphore.acquire()));
  line.log.push_back("ran on");
}
TEST(SemaphoreCancel, a_shielded_wait_ignores_the_cancel_until_it_is_granted) {
  Line line(1);
  line.enter("holder");
  line.start("a", acquire_shielded(line));
  line.cancel("a");
  line.run();
  EXPECT_EQ(line.semaphore.waiting(), 1u);
  EXPECT_FALSE(line.scopes["a"]->idle());
  line.give_back("holder");
  line.run();
  EXPECT_EQ(line.log, Log{"holder"}) << "then the cancel takes effect";
  EXPECT_TRUE(line.scopes["a"]->idle());
  EXPECT_EQ(line.semaphore.available(), 1);
}

Task<> waits_in_a_scope(Line& line, Scope*& inner, std::string& why) {
  const auto open = [&](Scope& scope) -> Task<> {
    inner = &scope;
    (void)co_await line.semaphore.acquire();
  };
  const auto result = co_await with_scope(std::ref(open));
  why = result ? "" : result.error().describe();
}
TEST(SemaphoreCancel, carries_the_cause_of_the_cancel) {
  Line line(0);
  Scope* inner = nullptr;
  std::string why;
  line.start("a", waits_in_a_scope(line, inner, why));
  inner->cancel(Reason::user, "the operator said so");
  line.run();
  EXPECT_TRUE(contains(why, "the operator said so")) << why;
}

// ---- Deadlines -----------------------------------------------------------------------------------------------------

TEST(SemaphoreTimed, free_units_are_granted_even_if_the_deadline_has_passed) {
  Line line(1);
  line.sim.advance(10s);
  line.enter_until("a", TimePoint(5s));
  EXPECT_EQ(line.log, Log{"a"});
}
TEST(SemaphoreTimed, a_deadline_that_has_passed_ends_the_wait_at_once) {
  for (const auto deadline : {5s, 10s}) {
    Line line(1);
    line.sim.advance(10s);
    line.enter("holder");
    line.enter_until("a", TimePoint(deadline));
    line.sim.settle();
    EXPECT_EQ(line.log, (Log{"holder", "a: timed out"}));
    EXPECT_LE(line.sim.now(), TimePoint(10s + Executor::kTick));
  }
}
TEST(SemaphoreTimed, a_wait_without_a_deadline_arms_no_timer) {
  Line line(1);
  line.enter("holder");
  line.enter_until("a", TimePoint::max());
  line.sim.settle();
  EXPECT_EQ(line.sim.now(), TimePoint());
  EXPECT_EQ(line.semaphore.waiting(), 1u);
}

Task<> time_out(Line& line, Duration timeout) {
  const TimePoint deadline = line.sim.now() + timeout;
  const auto permit = co_await line.semaphore.acquire_until(deadline);
  EXPECT_EQ(permit.error(), Errc::timed_out);
  EXPECT_GE(line.sim.now(), deadline) << "early";
  EXPECT_LE(line.sim.now(), deadline + Executor::kTick) << "late";
}
TEST(SemaphoreTimed, never_early_and_at_most_a_tick_late) {
  for_seeds(50, [](std::uint64_t seed) {
    Line line(0, seed);
    for (int i = 0; i < 20; ++i) {
      line.start(std::to_string(i), time_out(line, std::chrono::nanoseconds(line.sim.random()() % 100'000'000)));
    }
    line.sim.settle();
  });
}

TEST(SemaphoreTimed, timed_and_untimed_waiters_share_one_line) {
  Line line(1);
  line.enter("holder");
  line.enter("untimed 1");
  line.enter_until("timed out", TimePoint(1s));
  line.enter_until("in time", TimePoint(3s));
  line.enter("untimed 2");
  line.news();
  line.sim.advance(2s);
  EXPECT_EQ(line.news(), Log{"timed out: timed out"});
  EXPECT_EQ(line.serve_all_after("holder"), (Log{"untimed 1", "in time", "untimed 2"}));
}

TEST(SemaphoreTimed, a_storm_of_short_deadlines_leaves_the_permits_usable) {
  for_seeds(20, [](std::uint64_t seed) {
    Line line(2, seed);
    line.permits["held"] = std::move(*line.semaphore.try_acquire(2));
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < 100; ++i) {
        line.enter_until(std::to_string(i), line.sim.now() + 1us, 1 + static_cast<std::uint32_t>(i) % 2);
      }
      line.sim.settle();
    }
    EXPECT_EQ(line.log.size(), 500u);
    line.give_back("held");
    line.enter("a", 2);
    EXPECT_EQ(line.log.back(), "a");
  });
}

Task<> give_back_at(Line& line, std::string name, TimePoint when) {
  co_await sleep_until(when);
  line.give_back(name);
}
TEST(SemaphoreTimed, a_simultaneous_deadline_and_release_have_one_winner) {
  std::set<std::string> outcomes;
  for_seeds(100, [&outcomes](std::uint64_t seed) {
    Line line(1, seed);
    line.enter("holder");
    line.start("releaser", give_back_at(line, "holder", TimePoint(2s)));
    line.enter_until("a", TimePoint(2s) + std::chrono::microseconds(line.sim.random()() % 3000) - 1500us);
    line.enter("b");
    line.news();
    line.sim.advance(3s);
    const bool granted = line.permits.contains("a");
    EXPECT_EQ(std::ranges::count(line.log, "a: timed out"), granted ? 0 : 1);
    EXPECT_EQ(line.permits.contains("b"), !granted) << "exactly one has the unit";
    outcomes.insert(granted ? "granted" : "timed out");
  });
  EXPECT_EQ(outcomes.size(), 2u);
}
TEST(SemaphoreTimed, a_deadline_between_grant_and_resume_has_no_effect) {
  Line line(1);
  line.enter("holder");
  line.enter_until("a", TimePoint(1s));
  line.start("releaser", give_back_at(line, "holder", TimePoint(999ms)));
  ASSERT_TRUE(line.sim.run_until([&line] { return !line.permits.contains("holder"); }));
  line.sim.advance(1h);
  EXPECT_EQ(line.log, (Log{"holder", "a"}));
}

Task<> keep_error(Line& line, std::string& what, Semaphore& semaphore, std::uint32_t units) {
  const auto permit = co_await semaphore.acquire_until(line.sim.now(), units);
  what = permit ? "" : permit.error().what();
}
TEST(SemaphoreTimed, failures_name_the_semaphore) {
  Line line(1);
  Semaphore named("model tokens", 0);
  std::string what;
  line.start("timed out", keep_error(line, what, named, 1));
  line.sim.settle();
  EXPECT_TRUE(contains(what, "model tokens")) << what;
  EXPECT_TRUE(named.set_capacity(2));
  line.start("impossible", keep_error(line, what, named, 3));
  EXPECT_TRUE(contains(what, "model tokens") && contains(what, "3") && contains(what, "2")) << what;
  named.close();
  line.start("closed", keep_error(line, what, named, 1));
  EXPECT_TRUE(contains(what, "model tokens") && contains(what, "closed")) << what;
}
TEST(SemaphoreTimed, labelled_requests_have_deadlines_too) {
  Line line(1);
  line.enter("holder");
  AcquireOptions options;
  line.start("a", line.wait("a", line.semaphore.acquire(options, Deadline(TimePoint(2s)))));
  line.start("b", line.wait("b", line.semaphore.acquire(options)));
  line.sim.settle();
  EXPECT_EQ(line.log, (Log{"holder", "a: timed out"}));
  EXPECT_EQ(line.sim.now(), TimePoint(2s));
}

// ---- Very many -----------------------------------------------------------------------------------------------------

TEST(SemaphoreCancel, a_million_cancelled_waits_leak_no_memory) {
  Line line(1);
  auto held = line.semaphore.try_acquire();
  const auto acquire = [](Semaphore& semaphore) -> Task<> { (void)co_await semaphore.acquire(); };
  const auto cycle = [&] {
    RootScope scope(line.sim);
    for (int i = 0; i < 100; ++i) scope.spawn(acquire(line.semaphore));
    line.run();
    scope.cancel();
    line.run();
  };
  cycle();
  const auto before = ::mallinfo2().uordblks;
  for (int i = 0; i < rounds(10'000); ++i) cycle();
  if (!kSanitized) {  // the leak sanitizer counts by itself
    EXPECT_LE(::mallinfo2().uordblks, before + 4096);
  }
}

/// Runs `body` on a thread with a small stack, so that recursion over a hundred thousand frames overflows it.
template <class Body>
void on_a_small_stack(Body body) {
  pthread_attr_t attributes;
  pthread_t thread;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 512 * 1024), 0);
  const auto run = [](void* it) -> void* {
    (*static_cast<Body*>(it))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &body), 0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}
TEST(SemaphoreCancel, a_hundred_thousand_cancelled_at_once_do_not_recurse) {
  on_a_small_stack([] {
    Line line(1);
    line.permits["held"] = std::move(*line.semaphore.try_acquire());
    auto& scope = line.scopes["all"] = std::make_unique<RootScope>(line.sim);
    for (int i = 0; i < 100'000; ++i) scope->spawn(hold(line.semaphore, line.log, "?"));
    line.run();
    line.give_back("held");  // one has an undelivered grant, which passes from waiter to waiter
    scope->cancel();
    line.run();
    EXPECT_TRUE(scope->idle());
    EXPECT_EQ(line.log, Log{});
    EXPECT_EQ(line.semaphore.available(), 1);
  });
}

Task<> at_depth(Semaphore& semaphore, int depth) {
  if (depth > 0) {
    co_await at_depth(semaphore, depth - 1);
  } else {
    (void)co_await semaphore.acquire();
  }
}
TEST(SemaphoreCancel, a_wait_beneath_a_hundred_thousand_frames_is_cancelled_without_recursion) {
  on_a_small_stack([] {
    Line line(0);
    line.start("deep", at_depth(line.semaphore, 100'000));
    line.cancel("deep");
    line.run();
    EXPECT_TRUE(line.scopes["deep"]->idle());
  });
}

}  // namespace
}  // namespace stint
