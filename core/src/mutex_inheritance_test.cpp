// Priority inheritance: the holder of a mutex with a waiter of higher priority goes ahead of its line.
#include "stint/mutex.hpp"
#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

namespace stint {
namespace {

constexpr int kLow = -1, kNormal = 0, kHigh = 2;

AcquireOptions request(int priority, std::string_view label = {}, std::uint32_t units = 1) {
  AcquireOptions options;
  options.priority = priority;
  options.label = label;
  options.units = units;
  return options;
}
LockOptions lock_request(int priority, std::string_view label) {
  LockOptions options;
  options.priority = priority;
  options.label = label;
  return options;
}
Semaphore::Options without_aging() {
  Semaphore::Options options;
  options.passed_over_max = 1'000'000;
  return options;
}

struct Inheritance : testing::Test {
  Scope& start(Task<> task) {
    scopes.push_back(std::make_unique<RootScope>(sim));
    scopes.back()->spawn(std::move(task));
    sim.run_ready();
    return *scopes.back();
  }
  /// Locks `mutex`, then waits for the processor while it holds it.
  Task<> holds(Mutex& mutex, std::string caller, int priority, Duration works = 1s) {
    const auto guard = co_await mutex.lock(lock_request(priority, caller));
    log.push_back(caller + " locked");
    const auto permit = co_await cpu.acquire(request(priority, caller));
    log.push_back(caller + " runs");
    co_await sleep_for(works);
  }
  /// Locks only `mutex`.
  Task<> wants(Mutex& mutex, std::string caller, int priority) {
    const auto guard = co_await mutex.lock(lock_request(priority, caller));
    log.push_back(caller + (guard ? " locked" : " " + std::string(to_string(guard.error().code()))));
    co_await sleep_for(1s);
  }
  /// Acquires only the processor.
  Task<> runs(std::string caller, int priority, std::uint32_t units = 1) {
    const auto permit = co_await cpu.acquire(request(priority, caller, units));
    log.push_back(caller + " runs");
    co_await sleep_for(1s);
  }
  /// The waiters for the processor with their priorities, in listing order.
  Log line() const {
    Log found;
    for (const auto& waiter : cpu.waiters()) found.push_back(waiter.label + ":" + std::to_string(waiter.priority));
    return found;
  }
  void TearDown() override {
    for (auto& scope : scopes) scope->cancel();
    sim.run_ready();
    EXPECT_EQ(cpu.available(), cpu.capacity());
  }

  Log log;
  Semaphore cpu{"cpu", 1, without_aging()};
  Mutex m1{"m1"}, m2{"m2"};
  std::vector<std::unique_ptr<RootScope>> scopes;
  Simulator sim{1, Simulator::Order::fifo};  // last member: destroyed first, with every frame
};

// ---- The classic inversion: low holds, high waits, the others keep running -----------------------------------------

Task<> keeps_running(Semaphore& cpu) {
  while (true) {
    const auto permit = co_await cpu.acquire(request(kNormal));
    co_await sleep_for(1ms);
  }
}
template <class Lock>
Task<> works_locked(Lock lock, Semaphore& cpu, int slices) {
  const auto held = co_await lock(kLow);
  for (int i = 0; i < slices; ++i) {
    const auto permit = co_await cpu.acquire(request(kLow));
    co_await sleep_for(1ms);
  }
}
template <class Lock>
Task<> wants_lock(Lock lock, Executor& executor, std::optional<TimePoint>& when) {
  const auto held = co_await lock(kHigh);
  when = executor.now();
}
/// When the high-priority task gets the lock, if within ten seconds; it requests it after ten milliseconds.
template <class Lock>
std::optional<TimePoint> inversion(Lock lock, std::uint64_t seed) {
  Semaphore cpu("cpu", 1, without_aging());
  Simulator sim(seed);
  RootScope scope(sim);
  std::optional<TimePoint> when;
  scope.spawn(works_locked(lock, cpu, 5));
  sim.run_ready();
  for (int i = 0; i < 3; ++i) scope.spawn(keeps_running(cpu));
  sim.advance(10ms);
  scope.spawn(wants_lock(lock, sim, when));
  sim.advance(10s);
  scope.cancel();
  sim.settle();
  return when;
}
TEST(Inversion, is_bounded_by_the_mutex_and_unbounded_with_a_semaphore_of_one) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Semaphore one("one", 1);
    EXPECT_EQ(inversion([&one](int priority) { return one.acquire(request(priority)); }, seed), std::nullopt)
        << "a semaphore of one was no problem?";
    Mutex mutex("one");
    const auto when = inversion([&mutex](int priority) { return mutex.lock(priority); }, seed);
    ASSERT_TRUE(when) << "seed " << seed;
    // Four of its five slices were left, each preceded by a slice of another task that was already running.
    EXPECT_LE(*when, TimePoint(10ms + 4 * 2ms)) << "seed " << seed;
  }
}

// ---- One step at a time --------------------------------------------------------------------------------------------

TEST_F(Inheritance, a_waiting_holder_moves_up_when_a_higher_priority_waits_for_it) {
  start(runs("busy", kNormal));
  start(holds(m1, "low", kLow));
  start(runs("normal", kNormal));
  EXPECT_EQ(line(), (Log{"normal:0", "low:-1"}));
  start(wants(m1, "high", kHigh));
  EXPECT_EQ(m1.holder()->effective, kHigh);
  sim.settle();
  EXPECT_EQ(log, (Log{"busy runs", "low locked", "low runs", "normal runs", "high locked"}));
}
TEST_F(Inheritance, a_holder_that_starts_waiting_later_is_boosted_from_the_start) {
  start(runs("busy", kNormal));
  const auto waits_later = [](Inheritance& test) -> Task<> {
    const auto guard = co_await test.m1.lock(lock_request(kLow, "low"));
    co_await sleep_for(500ms);
    const auto permit = co_await test.cpu.acquire(request(kLow, "low"));
    test.log.push_back("low runs");
  };
  start(waits_later(*this));
  start(runs("normal", kNormal));
  start(wants(m1, "high", kHigh));
  sim.advance(600ms);
  EXPECT_EQ(line(), (Log{"normal:0", "low:2"}));
  sim.settle();
  EXPECT_EQ(log, (Log{"busy runs", "low runs", "normal runs", "high locked"}));
}
TEST_F(Inheritance, the_boost_ends_with_the_unlock) {
  start(runs("busy", kNormal));
  const auto unlocks = [](Inheritance& test) -> Task<> {
    auto guard = co_await test.m1.lock(lock_request(kLow, "low"));
    co_await sleep_for(500ms);
    EXPECT_TRUE((co_await guard->unlock()).has_value());
    const auto permit = co_await test.cpu.acquire(request(kLow, "low"));
    test.log.push_back("low runs");
  };
  start(unlocks(*this));
  start(runs("normal", kNormal));
  start(wants(m1, "high", kHigh));
  sim.settle();
  EXPECT_EQ(log, (Log{"busy runs", "high locked", "normal runs", "low runs"}));
}
TEST_F(Inheritance, unlocking_one_of_two_mutexes_keeps_the_boost_of_the_other) {
  const auto holds_two = [](Inheritance& test) -> Task<> {
    auto first = co_await test.m1.lock(lock_request(kLow, "low"));
    const auto second = co_await test.m2.lock(lock_request(kLow, "low"));
    co_await sleep_for(100ms);
    EXPECT_EQ(test.m1.holder()->effective, kHigh);
    EXPECT_TRUE((co_await first->unlock()).has_value());
    EXPECT_EQ(test.m2.holder()->effective, kNormal);
    co_await sleep_for(100ms);
  };
  start(holds_two(*this));
  start(wants(m1, "high", kHigh));
  start(wants(m2, "normal", kNormal));
  sim.settle();
  EXPECT_EQ(log, (Log{"high locked", "normal locked"}));
}
TEST_F(Inheritance, a_cancelled_high_waiter_removes_its_boost_and_the_holder_keeps_its_place) {
  start(runs("busy", kNormal));
  start(runs("before", kLow));
  start(holds(m1, "low", kLow));
  start(runs("behind", kLow));
  Scope& high = start(wants(m1, "high", kHigh));
  EXPECT_EQ(line(), (Log{"before:-1", "low:2", "behind:-1"}));
  high.cancel();
  EXPECT_EQ(line(), (Log{"before:-1", "low:-1", "behind:-1"}));
  EXPECT_EQ(m1.holder()->effective, kLow);
  sim.settle();
  EXPECT_EQ(log, (Log{"busy runs", "low locked", "before runs", "low runs", "behind runs"}));
}
TEST_F(Inheritance, a_high_waiter_that_times_out_removes_its_boost) {
  start(runs("busy", kNormal));
  start(holds(m1, "low", kLow));
  const auto gives_up = [](Inheritance& test) -> Task<> {
    const auto guard = co_await test.m1.lock_until(TimePoint(100ms), kHigh);
    EXPECT_EQ(guard.error(), Errc::timed_out);
  };
  start(gives_up(*this));
  EXPECT_EQ(line(), Log{"low:2"});
  sim.advance(200ms);
  EXPECT_EQ(line(), Log{"low:-1"});
}
TEST_F(Inheritance, propagates_through_two_mutexes_and_is_undone) {
  start(runs("busy", kNormal));
  start(holds(m2, "low", kLow));  // waits for the processor
  const auto holds_one_wants_two = [](Inheritance& test) -> Task<> {
    const auto first = co_await test.m1.lock(lock_request(kNormal, "middle"));
    const auto second = co_await test.m2.lock(lock_request(kNormal, "middle"));
    test.log.push_back("middle has both");
  };
  start(holds_one_wants_two(*this));
  EXPECT_EQ(line(), Log{"low:0"}) << "the middle one's priority";
  start(wants(m2, "rival", 1));
  EXPECT_EQ(m2.waiters()[0].label, "rival");
  Scope& high = start(wants(m1, "high", kHigh));
  EXPECT_EQ(line(), Log{"low:2"});
  EXPECT_EQ(m1.holder()->effective, kHigh);
  EXPECT_EQ(m2.holder()->effective, kHigh);
  ASSERT_EQ(m2.waiters().size(), 2u);
  EXPECT_EQ(m2.waiters()[0].label, "middle") << "it has moved up in the line of the second";
  EXPECT_EQ(m2.waiters()[0].effective, kHigh);
  high.cancel();
  EXPECT_EQ(m2.waiters()[0].label, "rival");
  EXPECT_EQ(line(), Log{"low:1"});
  start(wants(m1, "high", kHigh));
  sim.settle();
  EXPECT_EQ(log, (Log{"busy runs", "low locked", "low runs", "middle has both", "rival locked", "high locked"}));
}
TEST_F(Inheritance, a_wait_for_a_mutex_returns_to_its_place_among_equals) {
  start(holds(m2, "holder", kNormal, 1h));
  const auto holds_one_wants_two = [](Inheritance& test) -> Task<> {
    const auto first = co_await test.m1.lock(lock_request(kNormal, "between"));
    const auto second = co_await test.m2.lock(lock_request(kNormal, "between"));
  };
  const auto order = [this] {
    Log labels;
    for (const auto& waiter : m2.waiters()) labels.push_back(waiter.label);
    return labels;
  };
  start(wants(m2, "before", kNormal));
  start(holds_one_wants_two(*this));
  start(wants(m2, "behind", kNormal));
  Scope& high = start(wants(m1, "high", kHigh));
  EXPECT_EQ(order(), (Log{"between", "before", "behind"}));
  high.cancel();
  EXPECT_EQ(order(), (Log{"before", "between", "behind"}));
}
TEST_F(Inheritance, boosts_the_waits_of_branches_beneath_the_holder) {
  start(runs("busy", kNormal));
  const auto waits_with_deadline = [](Inheritance& test) -> Task<> {
    const auto guard = co_await test.m1.lock(lock_request(kLow, "low"));
    const auto permit =
        co_await with_deadline(Deadline(TimePoint(1h)), awaited(test.cpu.acquire(request(kLow, "low"))));
    test.log.push_back("low runs");
  };
  start(waits_with_deadline(*this));
  start(runs("normal", kNormal));
  start(wants(m1, "high", kHigh));
  EXPECT_EQ(line(), (Log{"normal:0", "low:2"}));
  sim.settle();
  EXPECT_EQ(log, (Log{"busy runs", "low runs", "normal runs", "high locked"}));
}
TEST_F(Inheritance, a_borrowed_guard_unlocked_by_a_branch_removes_the_boost_from_the_other_branches) {
  start(runs("busy", kNormal));
  const auto unlocks_later = [](MutexGuard& guard) -> Task<> {
    co_await sleep_for(100ms);
    EXPECT_TRUE((co_await guard.unlock()).has_value());
  };
  const auto passes_guard = [&unlocks_later](Inheritance& test) -> Task<> {
    auto guard = co_await test.m1.lock(lock_request(kLow, "low"));
    (void)co_await all(unlocks_later(*guard), test.runs("low", kLow));
  };
  start(passes_guard(*this));
  start(wants(m1, "high", kHigh));
  EXPECT_EQ(line(), Log{"low:2"});
  sim.advance(200ms);
  EXPECT_EQ(line(), Log{"low:-1"});
}
TEST_F(Inheritance, the_remaining_one_of_two_borrowed_guards_keeps_its_boost) {
  start(runs("busy", kNormal));
  const auto unlocks_later = [](MutexGuard& guard) -> Task<> {
    co_await sleep_for(100ms);
    EXPECT_TRUE((co_await guard.unlock()).has_value());
  };
  const auto passes_guard = [&unlocks_later](Inheritance& test) -> Task<> {
    auto first = co_await test.m1.lock(lock_request(kLow, "low"));
    const auto second = co_await test.m2.lock(lock_request(kLow, "low"));
    (void)co_await all(unlocks_later(*first), test.runs("low", kLow));
  };
  start(passes_guard(*this));
  start(wants(m1, "high", kHigh));
  start(wants(m2, "normal", kNormal));
  EXPECT_EQ(line(), Log{"low:2"});
  sim.advance(200ms);
  EXPECT_EQ(line(), Log{"low:0"});
}
TEST_F(Inheritance, a_waiter_that_fits_is_granted_when_a_boost_makes_it_the_head) {
  ASSERT_TRUE(cpu.set_capacity(2));
  start(runs("busy", kNormal));
  start(runs("big", kNormal, 2));  // does not fit, and blocks those behind it
  start(holds(m1, "low", kLow));
  EXPECT_EQ(log, (Log{"busy runs", "low locked"}));
  start(wants(m1, "high", kHigh));
  EXPECT_EQ(log.back(), "low runs");
}
TEST_F(Inheritance, a_starving_waiter_is_not_passed_over_for_a_boost) {
  Semaphore::Options options;
  options.passed_over_max = 2;
  Semaphore patient("patient", 1, options);
  Log order;
  const auto takes = [](Semaphore& from, int priority, std::string caller, Log& seen) -> Task<> {
    const auto permit = co_await from.acquire(request(priority, caller));
    seen.push_back(caller);
    co_await sleep_for(1s);
  };
  const auto holds_and_takes = [&takes](Mutex& mutex, Semaphore& from, std::string caller, Log& seen) -> Task<> {
    const auto guard = co_await mutex.lock(lock_request(kLow, caller));
    co_await takes(from, kLow, caller, seen);
  };
  std::optional<Mutex> mutexes[4];
  start(takes(patient, kNormal, "busy", order));
  start(takes(patient, kNormal, "normal", order));
  for (auto& mutex : mutexes) start(holds_and_takes(mutex.emplace("m"), patient, "boosted", order));
  for (auto& mutex : mutexes) start(wants(*mutex, "high", kHigh));
  sim.settle();
  EXPECT_EQ(order, (Log{"busy", "boosted", "boosted", "normal", "boosted", "boosted"}));
}
TEST_F(Inheritance, the_boosted_waiter_of_higher_priority_goes_first) {
  Mutex m3("m3");
  start(runs("busy", kNormal));
  start(holds(m1, "first", kLow));
  start(holds(m2, "second", kLow));
  start(holds(m3, "third", kLow));
  start(wants(m1, "important", 1));
  start(wants(m2, "most important", 3));
  start(wants(m3, "more important", 2));
  sim.settle();
  std::erase_if(log, [](const std::string& entry) { return entry.ends_with("locked"); });
  EXPECT_EQ(log, (Log{"busy runs", "second runs", "third runs", "first runs"}));
}
TEST_F(Inheritance, a_boost_between_the_grant_and_the_resume_has_no_effect) {
  ASSERT_TRUE(cpu.set_capacity(2));
  auto one = cpu.try_acquire(), other = cpu.try_acquire();
  start(holds(m1, "low", kLow));
  start(runs("normal", kLow));
  RootScope scope(sim);
  scope.spawn(wants(m1, "high", kHigh));
  scope.spawn(note([&other] { other.reset(); }));
  one.reset();  // granted to low, but those two run first
  sim.run_ready();
  EXPECT_EQ(log, (Log{"low locked", "low runs", "normal runs"}));
  sim.settle();
  EXPECT_EQ(log.back(), "high locked");
}
TEST_F(Inheritance, a_cancelled_boosted_waiter_wakes_the_waiters_it_blocked) {
  ASSERT_TRUE(cpu.set_capacity(2));
  start(runs("busy", kNormal));
  const auto holds_and_wants_two = [](Inheritance& test) -> Task<> {
    const auto guard = co_await test.m1.lock(lock_request(kLow, "low"));
    const auto permit = co_await test.cpu.acquire(request(kLow, "low", 2));
  };
  start(runs("first", kLow, 2));
  Scope& low = start(holds_and_wants_two(*this));
  start(wants(m1, "high", kHigh));
  start(runs("small", kNormal));
  EXPECT_EQ(line(), (Log{"small:0", "first:-1", "low:2"}));
  low.cancel();
  sim.run_ready();
  EXPECT_EQ(log, (Log{"busy runs", "small runs", "high locked"}));
}
TEST_F(Inheritance, closing_the_semaphore_or_destroying_the_executor_leaves_no_boost_behind) {
  Semaphore doomed("doomed", 1);
  const auto busy = doomed.try_acquire();
  const auto waits = [](Mutex& mutex, Semaphore& from, Log& seen) -> Task<> {
    const auto guard = co_await mutex.lock(lock_request(kLow, "low"));
    const auto permit = co_await from.acquire(request(kLow, "low"));
    seen.push_back(permit ? "?" : std::string(to_string(permit.error().code())));
  };
  start(waits(m1, doomed, log));
  start(wants(m1, "high", kHigh));
  doomed.close();
  sim.run_ready();
  EXPECT_EQ(log, (Log{"closed", "high locked"}));
  std::optional<Simulator> mortal(2);
  RootScope scope(*mortal);
  scope.spawn(holds(m2, "mortal", kLow));
  const auto processor = cpu.try_acquire();
  mortal->run_ready();
  start(wants(m2, "survivor", kHigh));
  EXPECT_EQ(line(), Log{"mortal:2"});
  mortal.reset();
  sim.run_ready();
  EXPECT_EQ(log.back(), "survivor locked");
  EXPECT_EQ(line(), Log{});
}

}  // namespace
}  // namespace stint
