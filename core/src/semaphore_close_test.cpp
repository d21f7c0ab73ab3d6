// Closing and destroying a semaphore, and the end of its users.
#include "semaphore_test_support.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

namespace stint {
namespace {

// ---- close() -------------------------------------------------------------------------------------------------------

TEST(SemaphoreClose, wakes_all_waiters_with_closed) {
  Line line(2, 0, bypass(1));
  line.permits["held"] = std::move(*line.semaphore.try_acquire(2));
  for (int i = 0; i < 100; ++i) {
    line.enter_as(std::to_string(i), i % 3, 1 + static_cast<std::uint32_t>(i) % 2);
  }
  line.semaphore.close();
  EXPECT_EQ(line.semaphore.waiting(), 0u);
  line.run();
  EXPECT_EQ(line.log.size(), 100u);
  EXPECT_TRUE(std::ranges::all_of(line.log, [](const std::string& entry) { return entry.ends_with(": closed"); }));
}
TEST(SemaphoreClose, new_requests_are_refused_and_nothing_is_taken) {
  Line line(2);
  line.semaphore.close();
  EXPECT_TRUE(line.semaphore.closed());
  EXPECT_FALSE(line.semaphore.try_acquire());
  EXPECT_FALSE(line.semaphore.try_acquire(AcquireOptions()));
  line.enter("plain");
  line.enter_until("timed", TimePoint(1h));
  line.enter_as("labelled", 1);
  line.enter("impossible", 3);
  EXPECT_EQ(line.log, (Log{"plain: closed", "timed: closed", "labelled: closed", "impossible: closed"}));
  EXPECT_EQ(line.semaphore.available(), 2);
}
TEST(SemaphoreClose, held_permits_stay_valid_and_can_be_returned) {
  Line line(3);
  line.enter("a", 2);
  line.semaphore.close();
  EXPECT_EQ(line.permits["a"].units(), 2u);
  EXPECT_EQ(line.semaphore.available(), 1);
  auto part = line.permits["a"].split(1);
  line.give_back("a");
  EXPECT_EQ(line.semaphore.available(), 2);
  part->release();
  EXPECT_EQ(line.semaphore.available(), 3);
  EXPECT_FALSE(line.semaphore.try_acquire()) << "it stays closed when the last is back";
}
TEST(SemaphoreClose, an_undelivered_grant_survives_the_close) {
  Line line(1);
  line.enter("holder");
  line.enter("a");
  line.give_back("holder");
  line.semaphore.close();
  line.run();
  EXPECT_EQ(line.log, (Log{"holder", "a"}));
}
TEST(SemaphoreClose, units_are_still_counted_after_close) {
  Line line(4);
  line.enter("a", 2);
  line.semaphore.close();
  EXPECT_TRUE(line.semaphore.set_capacity(10));
  EXPECT_EQ(line.semaphore.available(), 8);
  line.permits["a"].forget();
  EXPECT_EQ(line.semaphore.capacity(), 8u);
  EXPECT_EQ(line.semaphore.available(), 8);
  EXPECT_EQ(line.semaphore.release(1).error(), Errc::invalid);
  EXPECT_FALSE(line.semaphore.try_acquire());
}
TEST(SemaphoreClose, may_be_repeated) {
  Line line(1);
  line.enter("holder");
  line.enter("a");
  line.semaphore.close();
  line.semaphore.close();
  line.run();
  line.semaphore.close();
  EXPECT_EQ(line.log, (Log{"holder", "a: closed"}));
  EXPECT_TRUE(line.semaphore.closed());
}

// ---- Destruction ---------------------------------------------------------------------------------------------------

TEST(SemaphoreCloseDeathTest, can_not_be_destroyed_with_waiters) {
  EXPECT_DEATH(
      {
        Log log;
        Simulator sim;
        RootScope scope(sim);
        Semaphore semaphore("slots", 0);
        scope.spawn(hold(semaphore, log, "a"));
        sim.run_ready();
      },
      "still has waiters");
}
TEST(SemaphoreCloseDeathTest, can_not_be_destroyed_while_a_permit_is_held) {
  EXPECT_DEATH(
      {
        std::optional<Permit> permit;
        Semaphore semaphore("slots", 1);
        permit = semaphore.try_acquire();
      },
      "still held");
}
TEST(SemaphoreCloseDeathTest, can_not_be_destroyed_with_an_undelivered_grant) {
  EXPECT_DEATH(
      {
        Log log;
        Simulator sim;
        RootScope scope(sim);
        Semaphore semaphore("slots", 1);
        auto held = semaphore.try_acquire();
        scope.spawn(hold(semaphore, log, "a"));
        sim.run_ready();
        held.reset();
      },
      "still held");
}

TEST(SemaphoreClose, its_destructor_waits_for_a_releaser_between_two_batches) {
  SleepyExecutor executor;
  Log log;
  auto semaphore = std::make_unique<Semaphore>("slots", 100);
  auto held = semaphore->try_acquire(100);
  RootScope scope(executor);
  for (int i = 0; i < 100; ++i) scope.spawn(hold(*semaphore, log, "x"));
  executor.run_ready();
  std::atomic<bool> gone = false;
  std::thread destroyer;
  executor.on_wake = [&] {
    executor.on_wake = nullptr;
    scope.cancel();
    executor.run_ready();  // all units are returned, but the releaser has not finished
    destroyer = std::thread([&] {
      semaphore.reset();
      gone = true;
    });
    for (int i = 0; i < 1000 && !gone; ++i) std::this_thread::yield();
    EXPECT_FALSE(gone);
  };
  held.reset();
  destroyer.join();
  EXPECT_TRUE(gone);
}

TEST(SemaphoreClose, a_destroyed_executor_returns_queued_granted_and_held_units) {
  for_seeds(20, [](std::uint64_t seed) {
    Semaphore semaphore("slots", 3);
    Log log;
    auto held = semaphore.try_acquire(2);
    auto sim = std::make_unique<Simulator>(seed);
    RootScope scope(*sim);
    for (int i = 0; i < 5; ++i) scope.spawn(hold(semaphore, log, "x"));
    sim->run_ready();
    held.reset();
    EXPECT_EQ(log.size(), 1u);            // one holds,
    EXPECT_EQ(semaphore.available(), 0);  // two have an undelivered grant,
    EXPECT_EQ(semaphore.waiting(), 2u);   // two wait
    sim.reset();
    EXPECT_EQ(log.size(), 1u) << "no other waiter ran";
    EXPECT_EQ(semaphore.waiting(), 0u);
    EXPECT_EQ(semaphore.available(), 3);
  });
}
TEST(SemaphoreClose, a_stalled_executor_receives_its_grants_when_it_runs_again) {
  SleepyExecutor executor;
  Semaphore semaphore("slots", 1);
  Log log;
  {
    RootScope scope(executor);
    auto held = semaphore.try_acquire();
    scope.spawn(note([] {}));
    const auto visit = [&]() -> Task<> {
      const auto permit = co_await semaphore.acquire();
      log.push_back("served");
    };
    scope.spawn(visit());
    executor.run_ready();
    held.reset();
    EXPECT_EQ(log, Log{});
    EXPECT_EQ(semaphore.available(), 0) << "kept for a waiter whose executor is stalled";
    executor.run_ready();
    EXPECT_EQ(log, Log{"served"});
  }
  EXPECT_EQ(semaphore.available(), 1);
}

// ---- How a holder may end ------------------------------------------------------------------------------------------

Task<> throw_under_permit(Semaphore& semaphore) {
  const auto permit = co_await semaphore.acquire();
  co_await yield();
  throw std::runtime_error("boom");
}
TEST(SemaphoreClose, an_exception_under_the_permit_returns_it) {
  Line line(1);
  auto& scope = line.scopes["a"] = std::make_unique<RootScope>(line.sim);
  scope->spawn(throw_under_permit(line.semaphore));
  line.enter("next");
  EXPECT_NE(scope->exception(), nullptr);
  EXPECT_EQ(line.log, Log{"next"});
}
Task<Result<>> fail_under_permit(Semaphore& semaphore) {
  STINT_CO_TRY(const Permit permit, co_await semaphore.acquire());
  STINT_CO_CHECK(Result<>(fail(Errc::failed, "no")));
  co_await sleep_until(TimePoint(1h));
  co_return Result<>();
}
TEST(SemaphoreClose, an_early_return_returns_the_permit) {
  Line line(1);
  auto& scope = line.scopes["a"] = std::make_unique<RootScope>(line.sim);
  scope->spawn(fail_under_permit(line.semaphore));
  line.enter("next");
  EXPECT_EQ(line.log, Log{"next"});
}

TEST(SemaphoreClose, a_holder_that_never_releases_is_listed_with_label_and_age) {
  Simulator sim;
  Semaphore::Options options;
  options.track_holders = true;
  options.clock = &sim;
  Semaphore semaphore("slots", 3, options);
  AcquireOptions forgetful;
  forgetful.units = 2;
  forgetful.label = "run 17, attempt 2";
  {
    RootScope scope(sim);
    const auto forget = [&]() -> Task<> {
      const auto permit = co_await semaphore.acquire(forgetful);
      co_await sleep_until(TimePoint(1h));
    };
    sim.advance(5s);
    scope.spawn(forget());
    sim.advance(20min);
    const auto holders = semaphore.holders();
    ASSERT_EQ(holders.size(), 1u);
    EXPECT_EQ(holders[0].label, "run 17, attempt 2");
    EXPECT_EQ(holders[0].units, 2u);
    EXPECT_EQ(sim.now() - holders[0].since, 20min);
    scope.cancel();
    sim.settle();
  }
  EXPECT_TRUE(semaphore.holders().empty());
}

}  // namespace
}  // namespace stint
