// The semaphore across threads. These tests make races likely, not certain; a bug may need many runs to show. The
// sanitizers, the explorer, the history checker and tests/model check from other sides.
#include "semaphore_test_support.hpp"
#include "stint/asio.hpp"
#include "threads_test_support.hpp"

#include <algorithm>
#include <random>
#include <thread>

namespace stint {
namespace {

Task<> counts_grant(Semaphore& semaphore, int& granted, std::uint32_t units = 1) {
  const auto permit = co_await semaphore.acquire(units);
  if (permit) ++granted;
}

// ---- Grants --------------------------------------------------------------------------------------------------------

Task<> reports_thread(Semaphore& semaphore, std::thread::id& resumed_on) {
  const auto permit = co_await semaphore.acquire();
  resumed_on = std::this_thread::get_id();
}
TEST(SemaphoreThreads, a_grant_from_another_thread_resumes_the_waiter_on_its_own_thread) {
  Semaphore semaphore("slots", 1);
  auto held = semaphore.try_acquire();
  Reactor reactor;
  RootScope scope(reactor);
  std::thread::id resumed_on;
  scope.spawn(reports_thread(semaphore, resumed_on));
  std::thread releaser([&] {
    while (semaphore.waiting() == 0) std::this_thread::yield();
    held.reset();
  });
  EXPECT_TRUE(reactor.run(scope));
  releaser.join();
  EXPECT_EQ(resumed_on, std::this_thread::get_id());
}

TEST(SemaphoreThreads, a_stalled_reactor_receives_its_grants_when_it_runs_again) {
  Semaphore semaphore("slots", 1);
  auto held = semaphore.try_acquire();
  Reactor reactor;
  RootScope scope(reactor);
  int granted = 0;
  scope.spawn(counts_grant(semaphore, granted));
  reactor.run_until([&] { return semaphore.waiting() == 1; });
  std::thread([&] { held.reset(); }).join();  // the reactor is not running
  EXPECT_EQ(granted, 0);
  EXPECT_TRUE(reactor.run(scope));
  EXPECT_EQ(granted, 1);
}

TEST(SemaphoreThreads, permits_are_returned_when_an_executor_is_destroyed_with_queued_resumptions) {
  Semaphore semaphore("slots", 2);
  Log log;
  auto held = semaphore.try_acquire(2);
  auto reactor = std::make_unique<Reactor>();
  RootScope scope(*reactor);
  for (int i = 0; i < 3; ++i) scope.spawn(hold(semaphore, log, "x"));
  reactor->run_until([&] { return semaphore.waiting() == 3; });
  std::thread([&] { held.reset(); }).join();  // two are granted and wait in the inbox; one stays parked
  EXPECT_EQ(semaphore.waiting(), 1u);
  reactor.reset();
  EXPECT_EQ(log, Log{});
  EXPECT_EQ(semaphore.waiting(), 0u);
  EXPECT_EQ(semaphore.available(), 2);
}

TEST(SemaphoreThreads, a_release_concurrent_with_the_start_of_a_wait_is_not_lost) {
  Semaphore semaphore("slots", 1);
  Reactor reactor;
  std::optional<Permit> held;
  int granted = 0;
  const int count = race_rounds(
      rounds(20'000),
      [&](int, auto begin, auto end) {
        RootScope scope(reactor);
        held = semaphore.try_acquire();
        scope.spawn(counts_grant(semaphore, granted));
        begin();
        EXPECT_TRUE(reactor.run(scope));
        end();
      },
      [&](int round) {
        dawdle(static_cast<std::uint64_t>(round) % 256);
        held.reset();
      });
  EXPECT_EQ(granted, count);
}

TEST(SemaphoreThreads, a_semaphore_may_be_destroyed_as_soon_as_its_last_permit_is_returned) {
  for (const int waiters : {1, 100}) {  // more than a batch: the releaser takes the lock again in between
    Reactor reactor;
    std::unique_ptr<Semaphore> semaphore;
    std::optional<Permit> held;
    int granted = 0;
    const int count = race_rounds(
        rounds(waiters == 1 ? 10'000 : 1'000),
        [&](int, auto begin, auto end) {
          semaphore = std::make_unique<Semaphore>("short-lived", waiters);
          held = semaphore->try_acquire(static_cast<std::uint32_t>(waiters));
          RootScope scope(reactor);
          for (int i = 0; i < waiters; ++i) scope.spawn(counts_grant(*semaphore, granted));
          reactor.run_until([&] { return semaphore->waiting() == static_cast<std::size_t>(waiters); });
          begin();
          EXPECT_TRUE(reactor.run(scope));
          semaphore.reset();  // the other thread may still be inside its release
          end();
        },
        [&](int) { held.reset(); });
    EXPECT_EQ(granted, count * waiters);
  }
}

// ---- Two ends for one wait -----------------------------------------------------------------------------------------

TEST(SemaphoreThreads, a_release_and_a_cancel_have_one_outcome) {
  Semaphore semaphore("slots", 1);
  Reactor reactor;
  std::optional<RootScope> scope;
  std::optional<Permit> held;
  int granted = 0, lost = 0;
  const int count = race_rounds(
      rounds(100'000),
      [&](int round, auto begin, auto end) {
        scope.emplace(reactor);
        held = semaphore.try_acquire();
        scope->spawn(counts_grant(semaphore, granted));
        reactor.run_until([&] { return semaphore.waiting() == 1; });
        begin();
        dawdle(static_cast<std::uint64_t>(round / 2) % 64);
        if (round % 2 == 0) {
          scope->cancel();
        } else {
          held.reset();
        }
        (void)reactor.run(*scope);  // cancelled in every second round
        end();
        (void)reactor.run(*scope);  // the other thread's cancel may come after the end: it is still queued
        lost += semaphore.available() != 1;
      },
      [&](int round) {
        if (round % 2 == 0) {
          held.reset();
        } else {
          scope->cancel();
        }
      });
  EXPECT_EQ(lost, 0);
  EXPECT_GT(granted, 0);
  EXPECT_LT(granted, count);
}

TEST(SemaphoreThreads, cancels_from_several_threads_have_one_outcome) {
  Semaphore semaphore("slots", 0);
  Reactor reactor;
  std::optional<RootScope> scope;
  int granted = 0;
  race_rounds(
      rounds(10'000),
      [&](int, auto begin, auto end) {
        scope.emplace(reactor);
        scope->spawn(counts_grant(semaphore, granted));
        reactor.run_until([&] { return semaphore.waiting() == 1; });
        begin();
        scope->cancel(Reason::user);
        end();
        EXPECT_EQ(reactor.run(*scope).error(), Errc::cancelled);
      },
      [&](int) { scope->cancel(Reason::shutdown); });
  EXPECT_EQ(granted, 0);
  EXPECT_EQ(semaphore.waiting(), 0u);
}

Task<> counts_ends(Semaphore& semaphore, TimePoint deadline, int& granted, int& failed) {
  const auto permit = co_await semaphore.acquire_until(deadline);
  ++(permit ? granted : failed);
}
TEST(SemaphoreThreads, a_release_and_a_deadline_have_one_winner) {
  Semaphore semaphore("slots", 1);
  Reactor reactor;
  std::optional<Permit> held;
  std::mt19937_64 random(1);
  int granted = 0, timed_out = 0, granted_untimed = 0, lost = 0;
  const int count = race_rounds(
      rounds(500),
      [&](int round, auto begin, auto end) {
        RootScope timed(reactor), untimed(reactor);
        held = semaphore.try_acquire();
        // A busy machine may never release within some microseconds, so occasionally the deadline is far away.
        const Duration length = round % 4 == 0 ? Duration(10s) : Duration(5us);
        timed.spawn(counts_ends(semaphore, reactor.now() + length, granted, timed_out));
        untimed.spawn(counts_grant(semaphore, granted_untimed));
        begin();
        reactor.run_until([&] { return timed.idle() && untimed.idle(); });
        end();
        lost += semaphore.available() != 1;
      },
      [&](int) {
        const TimePoint when = Clock::now() + std::chrono::microseconds(random() % 2000);
        while (Clock::now() < when) std::this_thread::yield();
        held.reset();
      });
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(granted + timed_out, count);
  EXPECT_EQ(granted_untimed, count) << "whichever is first, the unit is passed on to the other";
  EXPECT_GT(granted, 0);
  EXPECT_GT(timed_out, 0);
}

TEST(SemaphoreThreads, a_close_and_a_cancel_have_one_outcome) {
  std::optional<Semaphore> semaphore;
  Reactor reactor;
  int granted = 0, closed = 0;
  race_rounds(
      rounds(20'000),
      [&](int round, auto begin, auto end) {
        semaphore.emplace("slots", 0);
        RootScope scope(reactor);
        scope.spawn(counts_ends(*semaphore, TimePoint::max(), granted, closed));
        reactor.run_until([&] { return semaphore->waiting() == 1; });
        begin();
        dawdle(static_cast<std::uint64_t>(round) % 64);
        scope.cancel();
        EXPECT_EQ(reactor.run(scope).error(), Errc::cancelled);
        end();
        EXPECT_EQ(semaphore->waiting(), 0u);
      },
      [&](int) { semaphore->close(); });
  EXPECT_EQ(granted + closed, 0) << "a cancel beats a close that was not seen";
}

TEST(SemaphoreThreads, closes_from_several_threads_end_every_wait_once) {
  constexpr int kWaiters = 100, kClosers = 4;
  for (int round = 0; round < rounds(200); ++round) {
    Semaphore semaphore("slots", 1);
    std::optional<Permit> held = semaphore.try_acquire();
    Meeting meeting(kClosers + 1);
    std::vector<std::thread> closers;
    for (int i = 0; i < kClosers; ++i) {
      closers.emplace_back([&] {
        meeting.meet();
        semaphore.close();
      });
    }
    Reactor reactor;
    RootScope scope(reactor);
    int granted = 0, closed = 0;
    for (int i = 0; i < kWaiters; ++i) scope.spawn(counts_ends(semaphore, TimePoint::max(), granted, closed));
    reactor.run_until([&] { return semaphore.waiting() == kWaiters; });
    meeting.meet();
    held.reset();
    EXPECT_TRUE(reactor.run(scope));
    for (auto& closer : closers) closer.join();
    EXPECT_EQ(granted + closed, kWaiters);
    EXPECT_EQ(semaphore.available(), 1);
  }
}

TEST(SemaphoreThreads, a_storm_of_short_deadlines_leaves_the_permits_usable) {
  constexpr int kStorms = 20, kWaits = 200;
  Semaphore semaphore("slots", 2);
  std::optional<Permit> held = semaphore.try_acquire(2);
  std::atomic<int> granted = 0, timed_out = 0;
  Meeting meeting(3);
  on_threads(3, [&](int id) {
    Reactor reactor;
    int had = 0, late = 0;
    for (int storm = 0; storm < (id == 2 ? 0 : kStorms); ++storm) {
      if (storm == 1) meeting.meet();
      RootScope scope(reactor);
      for (int i = 0; i < kWaits; ++i) scope.spawn(counts_ends(semaphore, reactor.now() + 1us, had, late));
      EXPECT_TRUE(reactor.run(scope));
    }
    if (id == 2) {  // in the first burst no unit is free; the second is concurrent with the release
      meeting.meet();
      held.reset();
    }
    granted += had;
    timed_out += late;
  });
  EXPECT_EQ(granted + timed_out, 2 * kStorms * kWaits);
  EXPECT_GE(timed_out, 2 * kWaits);
  EXPECT_TRUE(semaphore.try_acquire(2).has_value());
}

// ---- Visibility and exclusion --------------------------------------------------------------------------------------

TEST(SemaphoreThreads, writes_before_a_release_are_visible_after_an_acquire_on_the_fast_path) {
  Semaphore semaphore("lock", 1);
  const int count = rounds(100'000);
  int shared = 0;  // not atomic: the thread sanitizer watches
  on_threads(2, [&](int) {
    for (int i = 0; i < count;) {
      if (const auto permit = semaphore.try_acquire()) {
        ++shared;
        ++i;
      }
    }
  });
  EXPECT_EQ(shared, 2 * count);
}
Task<> reads(Semaphore& semaphore, const int& shared, int& seen) {
  const auto permit = co_await semaphore.acquire();
  seen = shared;
}
TEST(SemaphoreThreads, writes_before_a_release_are_visible_to_the_granted_waiter) {
  Semaphore semaphore("lock", 1);
  Reactor reactor;
  std::optional<Permit> held;
  int shared = 0, stale = 0;
  race_rounds(
      rounds(5000),
      [&](int round, auto begin, auto end) {
        RootScope scope(reactor);
        int seen = -1;
        held = semaphore.try_acquire();
        scope.spawn(reads(semaphore, shared, seen));
        reactor.run_until([&] { return semaphore.waiting() == 1; });
        begin();
        EXPECT_TRUE(reactor.run(scope));
        stale += seen != round;
        end();
      },
      [&](int round) {
        shared = round;
        held.reset();
      });
  EXPECT_EQ(stale, 0);
}

Task<> counts(Semaphore& semaphore, int& counter, int times) {
  for (int i = 0; i < times; ++i) {
    const auto permit = co_await semaphore.acquire();
    const int before = counter;
    co_await yield();  // keeps the permit while others run
    counter = before + 1;
  }
}
TEST(SemaphoreThreads, thirty_two_threads_exclude_each_other) {
  constexpr int kThreads = 32, kTasks = 2;
  const int times = rounds(300);
  Semaphore semaphore("lock", 1);
  std::optional<Permit> held = semaphore.try_acquire();
  int counter = 0;
  on_threads(kThreads + 1, [&](int id) {
    if (id == kThreads) {  // begins when all stand in line; from then on every release crosses threads
      while (semaphore.waiting() < kThreads * kTasks) std::this_thread::yield();
      return held.reset();
    }
    Reactor reactor;
    RootScope scope(reactor);
    for (int i = 0; i < kTasks; ++i) scope.spawn(counts(semaphore, counter, times));
    EXPECT_TRUE(reactor.run(scope));
  });
  EXPECT_EQ(counter, kThreads * kTasks * times);
}

TEST(SemaphoreThreads, the_fast_path_does_not_wrap_near_its_maximum) {
  constexpr std::int64_t kMost = Semaphore::kCapacityMax;
  Semaphore semaphore("wide", kMost);
  std::atomic<std::int64_t> out = 0;
  on_threads(5, [&](int id) {
    std::mt19937_64 random(static_cast<std::uint64_t>(id));
    for (int i = 0; i < rounds(50'000); ++i) {
      const auto units = static_cast<std::uint32_t>(random() >> (i % 2 == 0 ? 32 : 34)) | 1U;
      if (const auto permit = semaphore.try_acquire(units)) {
        EXPECT_LE(out += units, kMost);
        out -= units;
      }
    }
  });
  EXPECT_EQ(semaphore.available(), kMost);
}

// ---- Everything at once --------------------------------------------------------------------------------------------

Task<> cancels_after(Scope& scope, int turns) {
  for (int i = 0; i < turns; ++i) co_await yield();
  scope.cancel();
}
TEST(SemaphoreThreads, waits_that_begin_and_are_cancelled_while_units_come_back) {
  constexpr int kThreads = 3, kUnits = 10;
  for (int round = 0; round < rounds(300); ++round) {
    Semaphore::Options options;
    options.initially_held = kUnits;
    Semaphore semaphore("slots", kUnits, options);
    Meeting meeting(kThreads + 1);
    on_threads(kThreads + 1, [&](int id) {
      if (id == kThreads) {
        meeting.meet();
        for (int i = 0; i < kUnits; ++i) EXPECT_TRUE(semaphore.release(1));
        return;
      }
      Reactor reactor;
      RootScope scope(reactor), canceller(reactor);
      int granted = 0;
      for (int i = 0; i < 2; ++i) scope.spawn(counts_grant(semaphore, granted, 1 + static_cast<std::uint32_t>(id)));
      canceller.spawn(cancels_after(scope, round % 3));
      meeting.meet();
      reactor.run_until([&] { return scope.idle() && canceller.idle(); });
    });
    ASSERT_EQ(semaphore.available(), kUnits) << "round " << round;
  }
}
Task<> takes_batches(Semaphore& semaphore, std::atomic<int>& in_use) {
  for (const std::uint32_t units : {4U, 10U, 8U}) {
    const auto permit = co_await semaphore.acquire(units);
    EXPECT_LE(in_use += static_cast<int>(units), 10);
    in_use -= static_cast<int>(units);
  }
}
TEST(SemaphoreThreads, large_requests_of_two_threads_are_all_granted) {
  for (int round = 0; round < rounds(500); ++round) {
    Semaphore semaphore("slots", 10);
    std::atomic<int> in_use = 0;
    Meeting meeting(2);
    on_threads(2, [&](int) {
      Reactor reactor;
      RootScope scope(reactor);
      scope.spawn(takes_batches(semaphore, in_use));
      meeting.meet();
      EXPECT_TRUE(reactor.run(scope));
    });
    ASSERT_EQ(semaphore.available(), 10);
  }
}
TEST(SemaphoreThreads, concurrent_release_try_forget_and_resize_lose_no_unit) {
  for (int round = 0; round < rounds(500); ++round) {
    Semaphore::Options options;
    options.initially_held = 5;
    options.track_holders = round % 2 == 0;
    Semaphore semaphore("slots", 10, options);
    Meeting meeting(4);
    std::atomic<int> forgotten = 0;
    on_threads(4, [&](int id) {
      meeting.meet();
      for (int i = 0; i < 5; ++i) {
        if (id == 0) EXPECT_TRUE(semaphore.release(1));
        if (id == 1) (void)semaphore.try_acquire(2);
        if (id == 2) {
          if (auto permit = semaphore.try_acquire()) permit->forget(), ++forgotten;
        }
        if (id == 3) EXPECT_GE(semaphore.available() + semaphore.holders().size(), 0);
      }
    });
    EXPECT_EQ(semaphore.capacity(), static_cast<std::uint32_t>(10 - forgotten));
    ASSERT_EQ(semaphore.available(), 10 - forgotten);
  }
}

struct SemaphoreStress {
  static constexpr int kCapacity = 5, kThreads = 4, kTasks = 3;
  Semaphore semaphore{"slots", kCapacity};
  std::atomic<std::int64_t> in_use = 0;
  std::atomic<std::int64_t> granted = 0, timed_out = 0, lost = 0;
};
Task<int> use(SemaphoreStress& stress, std::uint32_t units, bool timed, TimePoint deadline, int yields) {
  auto permit =
      timed ? co_await stress.semaphore.acquire_until(deadline, units) : co_await stress.semaphore.acquire(units);
  if (!permit) {
    ++stress.timed_out;
    co_return 0;
  }
  struct InUse {
    ~InUse() { count -= units; }
    std::atomic<std::int64_t>& count;
    std::int64_t units;
  };
  STINT_ASSERT((stress.in_use += units) <= SemaphoreStress::kCapacity);
  const InUse in_use{stress.in_use, units};
  ++stress.granted;
  for (int i = 0; i < yields; ++i) co_await yield();
  co_return 1;
}
Task<> stress_task(SemaphoreStress& stress, Executor& executor, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < rounds(30'000); ++round) {
    const auto units = static_cast<std::uint32_t>(1 + random() % 3);
    const int busy = static_cast<int>(random() % 3);
    if (random() % 4 == 0) {
      const auto winner = co_await race(use(stress, units, false, {}, busy), yields(static_cast<int>(random() % 32)));
      if (winner.index() == 1) ++stress.lost;
    } else {
      const bool timed = random() % 4 == 0;
      (void)co_await use(stress, units, timed, executor.now() + std::chrono::microseconds(random() % 2000), busy);
    }
  }
}
TEST(SemaphoreThreads, stress_of_grant_cancel_timeout_and_resize_on_four_threads) {
  SemaphoreStress stress;
  std::atomic<int> running = SemaphoreStress::kThreads;
  std::thread resizer([&] {
    for (std::uint32_t i = 0; running > 0; ++i) {
      EXPECT_TRUE(stress.semaphore.set_capacity(3 + i % 3));
      std::this_thread::yield();
    }
  });
  on_threads(SemaphoreStress::kThreads, [&](int id) {
    Reactor reactor;
    RootScope scope(reactor);
    for (int i = 0; i < SemaphoreStress::kTasks; ++i) {
      scope.spawn(stress_task(stress, reactor, static_cast<std::uint64_t>(id * 1000 + i)));
    }
    EXPECT_TRUE(reactor.run(scope));
    --running;
  });
  resizer.join();
  EXPECT_TRUE(stress.semaphore.set_capacity(SemaphoreStress::kCapacity));
  EXPECT_EQ(stress.semaphore.available(), SemaphoreStress::kCapacity);
  EXPECT_EQ(stress.in_use, 0);
  EXPECT_GT(stress.timed_out, 0);
  EXPECT_GT(stress.lost, 0);
}

}  // namespace
}  // namespace stint
