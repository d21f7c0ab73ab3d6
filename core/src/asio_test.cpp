// The semaphore between threads, and the reactor.
#include "stint/asio.hpp"

#include "test_support.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <random>
#include <thread>

namespace stint {
namespace {

Task<> reports_thread(Semaphore& semaphore, std::thread::id& resumed_on) {
  const auto permit = co_await semaphore.acquire();
  resumed_on = std::this_thread::get_id();
}
TEST(SemaphoreThreads, a_grant_from_another_thread_resumes_the_waiter_on_its_own) {
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
  reactor.run_until([&] { return scope.idle(); });
  releaser.join();
  EXPECT_EQ(resumed_on, std::this_thread::get_id());
}

TEST(SemaphoreThreads, permits_come_home_when_an_executor_dies_with_queued_resumptions) {
  Semaphore semaphore("slots", 2);
  Log log;
  auto held = semaphore.try_acquire(2);
  auto reactor = std::make_unique<Reactor>();
  RootScope scope(*reactor);
  for (int i = 0; i < 3; ++i) scope.spawn(hold(semaphore, log, "x"));
  reactor->run_until([&] { return semaphore.waiting() == 3; });
  std::thread([&] { held.reset(); }).join();  // two are granted and lie in the inbox; one stays parked
  EXPECT_EQ(semaphore.waiting(), 1u);
  reactor.reset();
  EXPECT_EQ(log, Log{});
  EXPECT_EQ(semaphore.waiting(), 0u);
  EXPECT_EQ(semaphore.available(), 2);
}

Task<> counts_grant(Semaphore& semaphore, int& granted) {
  const auto permit = co_await semaphore.acquire();
  ++granted;
}
TEST(SemaphoreThreads, a_release_and_a_cancel_from_another_thread_have_one_outcome) {
  constexpr int kRounds = 4000;
  Semaphore semaphore("slots", 1);
  Reactor reactor;
  int granted = 0;
  for (int round = 0; round < kRounds; ++round) {
    RootScope scope(reactor);
    auto held = semaphore.try_acquire();
    ASSERT_TRUE(held.has_value()) << "lost in round " << round;
    scope.spawn(counts_grant(semaphore, granted));
    std::thread other([&] {
      while (semaphore.waiting() == 0) std::this_thread::yield();
      if (round % 2 == 0) held.reset();
      scope.cancel();
      held.reset();
    });
    reactor.run_until([&] { return scope.idle(); });
    other.join();
    reactor.run_until([&] { return scope.idle(); });  // the cancel may have come after the end: it is still queued
  }
  EXPECT_GT(granted, 0);
  EXPECT_LT(granted, kRounds);
}

TEST(SemaphoreThreads, a_release_that_meets_a_wait_about_to_begin_is_not_lost) {
  constexpr int kRounds = 20'000;
  Semaphore semaphore("slots", 1);
  Reactor reactor;
  std::optional<Permit> held;
  std::atomic<int> begun = 0, released = 0;
  int granted = 0;
  std::thread other([&] {
    for (int round = 1; round <= kRounds; ++round) {
      while (begun < round) {  // spins: the two must meet within some 50 ns
      }
      for (volatile int delay = round % 256; delay > 0; delay = delay - 1) {
      }
      held.reset();
      released = round;
    }
  });
  for (int round = 1; round <= kRounds; ++round) {
    RootScope scope(reactor);
    held = semaphore.try_acquire();
    scope.spawn(counts_grant(semaphore, granted));
    begun = round;
    reactor.run_until([&] { return scope.idle(); });
    while (released < round) {
    }
  }
  other.join();
  EXPECT_EQ(granted, kRounds);
}

struct Stress {
  static constexpr int kCapacity = 5, kThreads = 4, kTasks = 3, kRounds = 100'000;
  Semaphore semaphore{"slots", kCapacity};
  std::atomic<std::int64_t> in_use = 0;
  std::atomic<std::int64_t> granted = 0, timed_out = 0, lost = 0;
};
Task<int> use(Stress& stress, std::uint32_t units, bool timed, TimePoint deadline, int yields) {
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
  STINT_ASSERT((stress.in_use += units) <= Stress::kCapacity);
  const InUse in_use{stress.in_use, units};
  ++stress.granted;
  for (int i = 0; i < yields; ++i) co_await yield();
  co_return 1;
}
Task<int> yields(int count) {
  for (int i = 0; i < count; ++i) co_await yield();
  co_return 0;
}
Task<> stress_task(Stress& stress, Executor& executor, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < Stress::kRounds; ++round) {
    const auto units = static_cast<std::uint32_t>(1 + random() % 3);
    const int busy = static_cast<int>(random() % 3);
    if (random() % 4 == 0) {
      const auto winner = co_await race(use(stress, units, false, {}, busy), yields(static_cast<int>(random() % 32)));
      if (winner.index() == 1) ++stress.lost;
    } else {
      const bool timed = random() % 4 == 0;
      co_await use(stress, units, timed, executor.now() + std::chrono::microseconds(random() % 2000), busy);
    }
  }
}
TEST(SemaphoreThreads, stress_of_grant_cancel_timeout_and_resize_on_four_threads) {
  Stress stress;
  std::atomic<int> running = Stress::kThreads;
  std::vector<std::thread> threads;
  for (int id = 0; id < Stress::kThreads; ++id) {
    threads.emplace_back([&, id] {
      Reactor reactor;
      RootScope scope(reactor);
      for (int i = 0; i < Stress::kTasks; ++i) scope.spawn(stress_task(stress, reactor, id * 1000 + i));
      reactor.run_until([&] { return scope.idle(); });
      --running;
    });
  }
  for (std::uint32_t i = 0; running > 0; ++i) {
    stress.semaphore.set_capacity(3 + i % 3);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  for (auto& thread : threads) thread.join();
  stress.semaphore.set_capacity(Stress::kCapacity);
  EXPECT_EQ(stress.semaphore.available(), Stress::kCapacity);
  EXPECT_EQ(stress.in_use, 0);
  EXPECT_GT(stress.timed_out, 0);
  EXPECT_GT(stress.lost, 0);
  std::printf("  granted %ld, timed out %ld, lost races %ld\n", stress.granted.load(), stress.timed_out.load(),
              stress.lost.load());
}

// ---- Reactor -------------------------------------------------------------------------------------------------------

struct Counter final : Runnable {
  explicit Counter(int& counter) : count(counter) {}
  void run() noexcept override { ++count; }
  int& count;
};
TEST(ReactorTest, asio_is_woken_once_per_empty_to_non_empty) {
  Reactor reactor;
  int count = 0;
  std::deque<Counter> counters;
  for (int i = 0; i < 2000; ++i) counters.emplace_back(count);
  for (const int burst : {1, 2}) {
    std::thread([&] {
      for (int i = 0; i < 1000; ++i) reactor.post(counters[static_cast<std::size_t>((burst - 1) * 1000 + i)]);
    }).join();
    reactor.run_until([&] { return count == burst * 1000; });
    EXPECT_EQ(reactor.wakes(), static_cast<std::uint64_t>(burst));
  }
}

Task<> waits_for_io(asio::steady_timer& timer, bool& done) {
  co_await timer.async_wait(use_task);
  done = true;
}
Task<> spins(bool& done, std::int64_t& count) {
  while (!done && ++count < 20'000'000) co_await yield();
}
TEST(ReactorTest, a_full_run_queue_does_not_starve_io) {
  Reactor reactor;
  RootScope scope(reactor);
  asio::steady_timer timer(reactor.io(), 1ms);
  bool done = false;
  std::int64_t count = 0;
  scope.spawn(waits_for_io(timer, done));
  scope.spawn(spins(done, count));
  reactor.run_until([&] { return scope.idle(); });
  EXPECT_LT(count, 20'000'000);
}
TEST(ReactorTest, endless_io_does_not_starve_the_run_queue) {
  Reactor reactor;
  RootScope scope(reactor);
  std::int64_t handlers = 0, count = 0;
  bool done = false;
  const std::function<void()> flood = [&] {
    if (++handlers < 5'000'000) asio::post(reactor.io(), flood);
  };
  flood();
  scope.spawn(spins(done, count));
  reactor.run_until([&] { return count > 10'000; });
  EXPECT_LT(handlers, 5'000'000);
  done = true;
  reactor.run_until([&] { return scope.idle(); });
}

Task<> sleeps(Reactor& reactor, Duration duration, std::vector<int>& order, int id) {
  const TimePoint due = reactor.now() + duration;
  co_await sleep_until(due);
  EXPECT_GE(reactor.now(), due) << "early";
  order.push_back(id);
}
TEST(ReactorTest, timers_fire_in_order_and_never_early) {
  Reactor reactor;
  RootScope scope(reactor);
  std::vector<int> order;
  for (const int id : {3, 1, 90, 70, 2}) scope.spawn(sleeps(reactor, id * 2ms, order, id));
  reactor.run_until([&] { return scope.idle(); });
  EXPECT_EQ(order, (std::vector{1, 2, 3, 70, 90}));
}

Task<> reads(asio::ip::tcp::socket socket, Log& log) {
  const Trace trace{log, "frame gone"};
  char byte = 0;
  co_await socket.async_read_some(asio::buffer(&byte, 1), use_task);
  log.push_back("ran on");
}
struct Connected {
  explicit Connected(asio::io_context& io) : near(io), far(io) {
    asio::ip::tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    near.connect(acceptor.local_endpoint());
    far = acceptor.accept();
  }
  asio::ip::tcp::socket near, far;
};
TEST(ReactorTest, a_cancel_from_another_thread_ends_an_asio_operation) {
  Reactor reactor;
  RootScope scope(reactor);
  Log log;
  Connected pair(reactor.io());
  scope.spawn(reads(std::move(pair.near), log));
  std::thread canceller([&] { scope.cancel(); });
  reactor.run_until([&] { return scope.idle(); });
  canceller.join();
  EXPECT_LE(log.size(), 1u);
}
struct ManualOperation {  // an Asio operation whose end the test decides
  auto start() {
    return asio::async_initiate<const UseTask, void(boost::system::error_code)>(
        [this](auto handler) {
          asio::get_associated_cancellation_slot(handler).assign([this](asio::cancellation_type) { asked = true; });
          finish = std::move(handler);
        },
        use_task);
  }
  bool asked = false;
  std::function<void(boost::system::error_code)> finish;
};
Task<> awaits(ManualOperation& operation, Log& log) {
  const Trace trace{log, "frame gone"};
  co_await operation.start();
  log.push_back("ran on");
}
TEST(ReactorTest, a_cancelled_asio_operation_keeps_its_frame_until_its_handler_has_run) {
  Reactor reactor;
  RootScope scope(reactor);
  Log log;
  ManualOperation operation;
  scope.spawn(awaits(operation, log));
  reactor.run_until([&] { return operation.finish != nullptr; });
  scope.cancel();
  int turns = 0;
  asio::post(reactor.io(), [&] { ++turns; });
  reactor.run_until([&] { return turns > 0; });
  EXPECT_TRUE(operation.asked);
  EXPECT_EQ(log, Log{});
  operation.finish(asio::error::operation_aborted);
  reactor.run_until([&] { return scope.idle(); });
  EXPECT_EQ(log, Log{"frame gone"});
}
Task<> starts_in_vain(Log& log) {
  const auto refuse = [](auto) { throw std::runtime_error("refused"); };
  try {
    co_await asio::async_initiate<const UseTask, void(boost::system::error_code)>(refuse, use_task);
  } catch (const std::runtime_error& error) {
    log.push_back(error.what());
  }
}
Task<> cancels_after_vain_start(Scope& scope, Log& log) {
  co_await starts_in_vain(log);
  scope.cancel();  // must not reach the leaf, which is gone with its frame
  co_await yield();
  log.push_back("ran on");
}
TEST(ReactorTest, an_asio_operation_that_throws_at_its_start_leaves_nothing_behind) {
  Reactor reactor;
  RootScope scope(reactor);
  Log log;
  scope.spawn(cancels_after_vain_start(scope, log));
  reactor.run_until([&] { return scope.idle(); });
  EXPECT_EQ(log, Log{"refused"});
}
TEST(ReactorTest, may_be_destroyed_with_an_asio_operation_in_flight) {
  Log log;
  auto reactor = std::make_unique<Reactor>();
  auto pair = std::make_unique<Connected>(reactor->io());
  RootScope scope(*reactor);
  scope.spawn(reads(std::move(pair->near), log));
  bool turned = false;
  asio::post(reactor->io(), [&] { turned = true; });
  reactor->run_until([&] { return turned; });
  pair.reset();
  reactor.reset();
  EXPECT_EQ(log, Log{"frame gone"});
}

}  // namespace
}  // namespace stint
