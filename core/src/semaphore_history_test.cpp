// Threads use one semaphore at random for a short time and record what they observed; the history checker decides
// whether that is possible. The seed of a round determines each thread's operations but not their timing, so a failing
// seed may need several runs.
#include "history_checker.hpp"
#include "stint/asio.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <optional>
#include <random>
#include <thread>

namespace stint::testing_support {
namespace {

using Kind = Operation::Kind;
using Outcome = Operation::Outcome;

constexpr std::int64_t kCapacity = 3;

/// What one thread recorded in one round.
class Track {
 public:
  Track(int thread, std::atomic<Moment>& clock) : thread_(thread), clock_(clock) {}
  Moment now() noexcept { return clock_.fetch_add(1); }
  Operation& add(Kind kind, std::int64_t units) {
    return operations_.emplace_back(
        Operation{.kind = kind, .outcome = Outcome::done, .thread = thread_, .units = units});
  }
  void move_to(History& history) {
    history.insert(history.end(), operations_.begin(), operations_.end());
    operations_.clear();
  }

 private:
  const int thread_;
  std::atomic<Moment>& clock_;
  std::deque<Operation> operations_;  // references stay valid
};

/// Timestamps an operation when it is called and when it ends, even if its frame is destroyed.
class Call {
 public:
  Call(Track& track, Operation& operation, Outcome unless_told_otherwise) : track_(track), operation_(operation) {
    operation_.outcome = unless_told_otherwise;
    operation_.called = track_.now();
  }
  ~Call() { operation_.returned = track_.now(); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  Track& track_;
  Operation& operation_;
};

class Dice {
 public:
  Dice(std::uint64_t seed, int thread) : random_(seed * 64 + static_cast<std::uint64_t>(thread)) {}
  int below(int limit) { return static_cast<int>(random_() % static_cast<std::uint64_t>(limit)); }

 private:
  std::mt19937_64 random_;
};

// ---- The rounds ----------------------------------------------------------------------------------------------------

/// A barrier: releases all threads within some 100 ns, which a condition variable would not do.
class Gate {
 public:
  explicit Gate(int threads) : threads_(threads) {}
  void pass() noexcept {
    const int turn = turn_.load();
    if (arrived_.fetch_add(1) + 1 == threads_) {
      arrived_ = 0;
      turn_ = turn + 1;
    }
    while (turn_.load() == turn) std::this_thread::yield();
  }

 private:
  const int threads_;
  std::atomic<int> arrived_ = 0, turn_ = 0;
};

struct Findings {
  int rounds = 0;
  std::size_t operations = 0;
  std::size_t outcomes[7] = {};  // by Outcome
  std::size_t in_line = 0;       // acquires that had to wait
  std::size_t states_most = 0;   // of one search
  std::optional<CheckResult> bad;
  std::uint64_t bad_seed = 0;
};

constexpr Duration kPlayTimeMax = std::chrono::seconds(5);  // on a busy machine a round takes several time slices

/// A `Player` is the state of one thread over the rounds; it `play`s one round, and returns everything at its end.
template <class Player, class Subject>
Findings play_rounds(Subject& subject, int threads, int rounds) {
  Findings findings;
  std::atomic<Moment> clock = 1;
  std::deque<Track> tracks;
  for (int i = 0; i < threads; ++i) tracks.emplace_back(i, clock);
  Gate gate(threads);
  bool over = false;
  const TimePoint until = Clock::now() + kPlayTimeMax;

  const auto check_round = [&](std::uint64_t seed) {
    History history;
    for (Track& track : tracks) track.move_to(history);
    const CheckResult result = check(history, kCapacity);
    ++findings.rounds;
    findings.operations += history.size();
    for (const Operation& operation : history) {
      ++findings.outcomes[static_cast<int>(operation.outcome)];
      findings.in_line += operation.arrived_by != kNever ? 1 : 0;
    }
    findings.states_most = std::max(findings.states_most, result.states);
    if (Clock::now() > until) over = true;
    if (result.answer == CheckResult::Answer::legal) return;
    findings.bad = result;
    findings.bad_seed = seed;
    over = true;
  };
  const auto run_thread = [&](int i) {
    Track& track = tracks[static_cast<std::size_t>(i)];
    Player player(subject, track);
    for (int seed = 1; seed <= rounds && !over; ++seed) {
      gate.pass();
      player.play(Dice(static_cast<std::uint64_t>(seed), i));
      gate.pass();
      if (i == 0) {
        player.take_all();  // a lost unit is detected here
        check_round(static_cast<std::uint64_t>(seed));
      }
      gate.pass();
    }
  };
  std::vector<std::thread> running;
  for (int i = 1; i < threads; ++i) running.emplace_back(run_thread, i);
  run_thread(0);
  for (std::thread& thread : running) thread.join();
  return findings;
}

std::string to_string(const Findings& findings) {
  std::ostringstream text;
  text << findings.rounds << " rounds, " << findings.operations << " operations, " << findings.in_line
       << " waited, at most " << findings.states_most << " states";
  if (findings.bad) text << "; seed " << findings.bad_seed << ": " << findings.bad->why;
  return text.str();
}

// ---- stint::Semaphore ----------------------------------------------------------------------------------------------

/// Records the time by which it is in line.
class WatchedAcquire final : public Acquire {
 public:
  WatchedAcquire(Semaphore& semaphore, Track& track, Operation& operation)
      : Acquire(semaphore, static_cast<std::uint32_t>(operation.units)), track_(track), operation_(operation) {}
  bool await_suspend(std::coroutine_handle<> awaiting) noexcept {
    const bool cancelled_before = token().cancelled();
    const bool waits = Acquire::await_suspend(awaiting);
    if (waits && !cancelled_before) operation_.arrived_by = track_.now();
    return waits;
  }

 private:
  Track& track_;
  Operation& operation_;
};

class TaskPlayer {
 public:
  static constexpr int kActors = 2, kTurns = 2;  // at once on each thread; one after another by each of them

  TaskPlayer(Semaphore& semaphore, Track& track) : semaphore_(semaphore), track_(track), scope_(reactor_) {}
  void play(Dice dice) {
    for (int i = 0; i < kActors; ++i) scope_.spawn(act(dice));
    EXPECT_TRUE(reactor_.run(scope_));
  }
  void take_all() { give_back(attempt(kCapacity)); }

 private:
  using Held = std::optional<Permit>;

  Task<> act(Dice& dice) {
    for (int turn = 0; turn < kTurns; ++turn) {
      const int units = 1 + dice.below(static_cast<int>(kCapacity));
      switch (dice.below(8)) {
        case 0: co_await hold(dice, attempt(units)); break;
        case 1: co_await resize_for_a_moment(dice); break;
        case 2: co_await time_out(dice, units); break;
        case 3:
        case 4: co_await hold_if_patient(dice, units); break;
        default: {
          Held held;
          co_await acquire(track_.add(Kind::acquire, units), held);
          co_await hold(dice, std::move(held));
        }
      }
    }
  }
  /// Yields to the thread's other actor and, every second time, to the other threads: on few cores a thread is seldom
  /// preempted in the middle of a round.
  Task<> pause(int yields) {
    for (int i = 0; i < yields; ++i) {
      if (i % 2 == 1) std::this_thread::yield();
      co_await yield();
    }
  }
  Task<> acquire(Operation& operation, Held& held) {
    const Call call(track_, operation, Outcome::cancelled);
    take(operation, co_await WatchedAcquire(semaphore_, track_, operation), held);
  }
  /// Holds what it can get, so that its own second request, and any request behind it, has to wait.
  Task<> time_out(Dice& dice, int units) {
    Held all = attempt(kCapacity);
    Held held;
    {
      Operation& operation = track_.add(Kind::acquire, units);
      const Call call(track_, operation, Outcome::cancelled);
      take(operation, co_await semaphore_.acquire_until(reactor_.now(), static_cast<std::uint32_t>(units)), held);
    }
    give_back(std::move(all));
    co_await hold(dice, std::move(held));
  }
  Task<> hold_if_patient(Dice& dice, int units) {
    Held held;
    Operation& operation = track_.add(Kind::acquire, units);
    (void)co_await race(acquire(operation, held), lose_patience(operation, dice.below(8)));
    co_await hold(dice, std::move(held));
  }
  Task<> lose_patience(Operation& operation, int yields) {
    co_await pause(yields);
    operation.ends_from = track_.now();
  }
  Task<> resize_for_a_moment(Dice& dice) {
    resize(dice.below(static_cast<int>(kCapacity) + 3));
    co_await pause(dice.below(4));
    resize(kCapacity);
  }
  Task<> hold(Dice& dice, Held held) {
    co_await pause(dice.below(4));
    give_back(std::move(held));
  }

  static void take(Operation& operation, Result<Permit> permit, Held& held) {
    if (permit) {
      operation.outcome = Outcome::granted;
      held = std::move(*permit);
    } else {
      operation.outcome = permit.error().code() == Errc::timed_out ? Outcome::timed_out : Outcome::invalid;
    }
  }
  Held attempt(std::int64_t units) {
    Operation& operation = track_.add(Kind::try_acquire, units);
    const Call call(track_, operation, Outcome::refused);
    Held held = semaphore_.try_acquire(static_cast<std::uint32_t>(units));
    if (held) operation.outcome = Outcome::granted;
    return held;
  }
  void give_back(Held held) {
    if (!held) return;
    const Call call(track_, track_.add(Kind::release, held->units()), Outcome::done);
    held.reset();
  }
  void resize(std::int64_t capacity) {
    const Call call(track_, track_.add(Kind::set_capacity, capacity), Outcome::done);
    STINT_ASSERT(semaphore_.set_capacity(capacity).has_value());
  }

  Semaphore& semaphore_;
  Track& track_;
  Reactor reactor_;
  RootScope scope_;
};

TEST(SemaphoreHistory, recorded_histories_are_linearizable) {
  for (const int threads : {3, 4}) {
    Semaphore semaphore("slots", kCapacity);
    const Findings findings = play_rounds<TaskPlayer>(semaphore, threads, 3000);
    EXPECT_FALSE(findings.bad) << to_string(findings);
    // The rounds are meaningful only if every outcome occurs.
    for (const Outcome outcome :
         {Outcome::granted, Outcome::refused, Outcome::cancelled, Outcome::timed_out, Outcome::invalid}) {
      const auto ended_so = static_cast<int>(findings.outcomes[static_cast<int>(outcome)]);
      EXPECT_GT(ended_so, findings.rounds / 60) << static_cast<int>(outcome);
    }
  }
}

// ---- More at once than one hold of the lock grants -----------------------------------------------------------------

/// Takes one unit and returns it at once, together with many others: one release grants more of them than fit into a
/// batch, and the first of them release between two batches. The history would be too long to check; the units are
/// counted.
class CrowdPlayer {
 public:
  static constexpr int kCrowd = 3 * Wakes::kMost;  // waits on each thread but the first

  CrowdPlayer(Semaphore& semaphore, std::atomic<int>& granted)
      : semaphore_(semaphore), granted_(granted), scope_(reactor_) {}
  void line_up_and_pass() {
    for (int i = 0; i < kCrowd; ++i) scope_.spawn(pass());
    EXPECT_TRUE(reactor_.run(scope_));
  }

 private:
  Task<> pass() {
    const auto permit = co_await semaphore_.acquire();
    granted_.fetch_add(permit ? 1 : 0);
  }
  Semaphore& semaphore_;
  std::atomic<int>& granted_;
  Reactor reactor_;
  RootScope scope_;
};

TEST(SemaphoreHistory, no_unit_is_lost_between_two_batches_of_grants) {
  constexpr int kCrowds = 2, kRounds = 20'000, kUnits = kCrowds * CrowdPlayer::kCrowd;
  Semaphore semaphore("slots", kUnits);
  std::atomic<int> granted = 0;
  std::atomic<bool> over = false;
  Gate gate(1 + kCrowds);
  std::vector<std::thread> crowds;
  for (int i = 0; i < kCrowds; ++i) {
    crowds.emplace_back([&] {
      CrowdPlayer player(semaphore, granted);
      for (gate.pass(); !over; gate.pass()) {
        player.line_up_and_pass();
        gate.pass();
      }
    });
  }
  int round = 0;
  const TimePoint until = Clock::now() + kPlayTimeMax;
  for (; round < kRounds && semaphore.available() == kUnits && Clock::now() < until; ++round) {
    auto all = semaphore.try_acquire(kUnits);
    gate.pass();
    while (semaphore.waiting() < static_cast<std::size_t>(kUnits)) std::this_thread::yield();
    all.reset();
    gate.pass();
  }
  over = true;
  gate.pass();
  for (std::thread& crowd : crowds) crowd.join();
  EXPECT_EQ(granted, round * kUnits);
  EXPECT_EQ(semaphore.available(), kUnits) << "in round " << round;
}

// ---- One that must be caught ---------------------------------------------------------------------------------------

/// The classic implementation: any thread that holds the mutex at the right time takes what is free.
class BargingSemaphore {
 public:
  explicit BargingSemaphore(std::int64_t capacity) : free_(capacity) {}
  void blocking_acquire(std::int64_t units, Track& track, Operation& operation) {
    std::unique_lock lock(mutex_);
    if (free_ < units) operation.arrived_by = track.now();
    freed_.wait(lock, [&] { return free_ >= units; });
    free_ -= units;
  }
  bool try_acquire(std::int64_t units) {
    const std::lock_guard lock(mutex_);
    if (free_ < units) return false;
    free_ -= units;
    return true;
  }
  void release(std::int64_t units) {
    const std::lock_guard lock(mutex_);
    free_ += units;
    freed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  std::int64_t free_;
};

class BlockingPlayer {
 public:
  static constexpr int kTurns = 3;

  BlockingPlayer(BargingSemaphore& semaphore, Track& track) : semaphore_(semaphore), track_(track) {}
  void play(Dice dice) {
    for (int turn = 0; turn < kTurns; ++turn) {
      const int units = 1 + dice.below(static_cast<int>(kCapacity));
      if (dice.below(4) == 0) {
        if (attempt(units)) hold(units, dice.below(3));
        continue;
      }
      {
        Operation& operation = track_.add(Kind::acquire, units);
        const Call call(track_, operation, Outcome::granted);
        semaphore_.blocking_acquire(units, track_, operation);
      }
      hold(units, dice.below(3));
    }
  }
  void take_all() {
    if (attempt(kCapacity)) hold(kCapacity, 0);
  }

 private:
  bool attempt(std::int64_t units) {
    Operation& operation = track_.add(Kind::try_acquire, units);
    const Call call(track_, operation, Outcome::refused);
    if (!semaphore_.try_acquire(units)) return false;
    operation.outcome = Outcome::granted;
    return true;
  }
  void hold(std::int64_t units, int yields) {
    for (int i = 0; i < yields; ++i) std::this_thread::yield();
    const Call call(track_, track_.add(Kind::release, units), Outcome::done);
    semaphore_.release(units);
  }

  BargingSemaphore& semaphore_;
  Track& track_;
};

TEST(SemaphoreHistory, detects_barging_of_a_mutex_with_a_condition_variable) {
  constexpr int kRoundsMax = 20'000;
  BargingSemaphore semaphore(kCapacity);
  const Findings findings = play_rounds<BlockingPlayer>(semaphore, 4, kRoundsMax);
  ASSERT_TRUE(findings.bad) << to_string(findings);
  EXPECT_EQ(findings.bad->answer, CheckResult::Answer::illegal);
  RecordProperty("rounds", findings.rounds);
}

}  // namespace
}  // namespace stint::testing_support
