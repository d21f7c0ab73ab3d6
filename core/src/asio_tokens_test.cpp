// The library used from plain Asio programs: completion tokens, cancellation slots, an attached reactor.
#include "stint/asio.hpp"
#include "test_support.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>

#include <array>
#include <mutex>
#include <thread>

namespace stint {
namespace {

using boost::system::error_code;

struct TokenTest : testing::Test {
  /// A handler on `io` that records how the acquire ended and keeps the permit.
  auto handler() {
    return asio::bind_executor(io, [this](error_code code, Permit permit) {
      log.push_back(code ? code.message() : "granted");
      if (permit) permits.push_back(std::move(permit));
    });
  }
  Semaphore semaphore{"slots", 2};
  Log log;
  std::vector<Permit> permits;
  asio::io_context io;
};

TEST_F(TokenTest, an_acquire_completes_on_the_handlers_executor_never_inline) {
  async_acquire(semaphore, 1, handler());
  EXPECT_EQ(log, Log{});
  io.run();
  EXPECT_EQ(log, Log{"granted"});
  EXPECT_EQ(semaphore.available(), 1);
}
TEST_F(TokenTest, acquires_wait_in_line_and_keep_the_context_running) {
  async_acquire(semaphore, 2, handler());
  async_acquire(semaphore, 1, handler());
  io.run_one();
  EXPECT_EQ(semaphore.waiting(), 1u);
  permits.clear();
  io.run();
  EXPECT_EQ(log, (Log{"granted", "granted"}));
}
TEST_F(TokenTest, impossible_requests_and_a_closed_semaphore_are_error_codes) {
  async_acquire(semaphore, 3, handler());
  semaphore.close();
  async_acquire(semaphore, 1, handler());
  io.run();
  EXPECT_EQ(log,
            (Log{error_code(asio::error::invalid_argument).message(), error_code(asio::error::shut_down).message()}));
}
TEST_F(TokenTest, its_cancellation_slot_ends_the_wait_with_operation_aborted) {
  auto held = semaphore.try_acquire(2);
  asio::cancellation_signal signal;
  async_acquire(semaphore, 1, asio::bind_cancellation_slot(signal.slot(), handler()));
  signal.emit(asio::cancellation_type::terminal);
  EXPECT_EQ(semaphore.waiting(), 0u);
  io.run();
  EXPECT_EQ(log, Log{error_code(asio::error::operation_aborted).message()});
  signal.emit(asio::cancellation_type::terminal);  // after the end there is nothing to cancel
}
TEST_F(TokenTest, a_destroyed_context_withdraws_its_waiters) {
  auto held = semaphore.try_acquire(2);
  {
    asio::io_context gone;
    async_acquire(semaphore, 1, asio::bind_executor(gone, [](error_code, Permit) { FAIL(); }));
    EXPECT_EQ(semaphore.waiting(), 1u);
  }
  EXPECT_EQ(semaphore.waiting(), 0u);
  held.reset();
  EXPECT_EQ(semaphore.available(), 2);
}
TEST_F(TokenTest, a_destroyed_context_returns_undelivered_grants) {
  {
    asio::io_context gone;
    async_acquire(semaphore, 2, asio::bind_executor(gone, [](error_code, Permit) { FAIL(); }));
    EXPECT_EQ(semaphore.available(), 0);
  }
  EXPECT_EQ(semaphore.available(), 2);
}
TEST_F(TokenTest, a_signal_may_outlive_the_context_of_its_operation) {
  auto held = semaphore.try_acquire(2);
  asio::cancellation_signal waits, granted;
  {
    asio::io_context gone;
    const auto never = asio::bind_executor(gone, [](error_code, Permit) { FAIL(); });
    async_acquire(semaphore, 1, asio::bind_cancellation_slot(granted.slot(), never));
    async_acquire(semaphore, 2, asio::bind_cancellation_slot(waits.slot(), never));
    held.reset();
  }
  waits.emit(asio::cancellation_type::terminal);
  granted.emit(asio::cancellation_type::terminal);
  EXPECT_EQ(semaphore.available(), 2);
}
TEST_F(TokenTest, a_signal_may_be_destroyed_before_its_operation) {
  auto held = semaphore.try_acquire(2);
  {
    asio::cancellation_signal signal;
    async_acquire(semaphore, 1, asio::bind_cancellation_slot(signal.slot(), handler()));
  }
  held.reset();
  io.run();
  EXPECT_EQ(log, Log{"granted"});
}
TEST_F(TokenTest, works_with_futures) {
  std::thread runner([this] {
    const auto work = asio::make_work_guard(io);
    io.run();
  });
  auto future = async_acquire(semaphore, 1, asio::bind_executor(io, asio::use_future));
  EXPECT_EQ(future.get().units(), 1u);
  io.stop();
  runner.join();
}

TEST(TokenThreads, acquires_on_a_thread_pool_never_exceed_the_capacity) {
  constexpr int kAcquires = 20'000;
  Semaphore semaphore("slots", 3);
  std::atomic<int> inside = 0, most = 0, done = 0;
  asio::thread_pool pool(4);
  for (int i = 0; i < kAcquires; ++i) {
    async_acquire(semaphore, 1, asio::bind_executor(pool, [&](error_code code, Permit permit) {
                    ASSERT_FALSE(code);
                    const int now = ++inside;
                    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
                    }
                    --inside;
                    permit.release();
                    ++done;
                  }));
  }
  pool.join();
  EXPECT_EQ(done, kAcquires);
  EXPECT_LE(most, 3);
  EXPECT_EQ(semaphore.available(), 3);
}

TEST_F(TokenTest, a_resize_that_ends_more_waits_than_a_batch_holds_wakes_them_all) {
  ASSERT_TRUE(semaphore.set_capacity(100));
  auto held = semaphore.try_acquire(1);
  for (int i = 0; i < 40; ++i) async_acquire(semaphore, 100, handler());  // the first keeps the others waiting
  for (int i = 0; i < 50; ++i) async_acquire(semaphore, 1, handler());
  ASSERT_TRUE(semaphore.set_capacity(60));
  io.run();
  EXPECT_EQ(std::count(log.begin(), log.end(), "granted"), 50);
  EXPECT_EQ(log.size(), 90u);
  permits.clear();
}

// ---- A reactor on the program's own context ------------------------------------------------------------------------

Task<Result<int>> answers(int value) {
  co_await sleep_for(1ms);
  if (value < 0) co_return fail(Errc::failed, "negative");
  co_return value;
}
struct AttachedTest : testing::Test {
  asio::io_context io;
  Log log;
  auto handler() {
    return asio::bind_executor(io, [this](error_code code, Result<int> result) {
      log.push_back(result ? std::to_string(*result) : code.message());
    });
  }
};
TEST_F(AttachedTest, tasks_run_while_the_program_runs_its_context) {
  Reactor reactor(io);
  RootScope scope(reactor);
  async_run(scope, answers(42), handler());
  async_run(scope, answers(-1), handler());
  io.run();
  ASSERT_EQ(log.size(), 2u);
  EXPECT_EQ(log[0], "42");
  EXPECT_TRUE(scope.idle());
}
TEST(AttachedDeathTest, an_attached_reactor_must_be_at_rest_when_destroyed) {
  EXPECT_DEATH(
      {
        asio::io_context io;
        Reactor reactor(io);
        RootScope scope(reactor);
        async_run(scope, answers(1), asio::bind_executor(io, [](error_code, Result<int>) {}));
        reactor.~Reactor();
      },
      "at rest");
}
Task<int> for_ever() {
  co_await sleep_for(1h);
  co_return 0;
}
TEST_F(AttachedTest, a_cancellation_slot_stops_the_task_and_its_children) {
  Reactor reactor(io);
  RootScope scope(reactor);
  asio::cancellation_signal signal;
  async_run(scope, for_ever(), asio::bind_cancellation_slot(signal.slot(), handler()));
  asio::post(io, [&] { signal.emit(asio::cancellation_type::terminal); });
  io.run();
  EXPECT_EQ(log, Log{error_code(asio::error::operation_aborted).message()});
  EXPECT_TRUE(scope.idle());
}
TEST_F(AttachedTest, a_cancel_before_the_task_has_started_is_not_lost) {
  Reactor reactor(io);
  RootScope scope(reactor);
  asio::cancellation_signal signal;
  bool started = false;
  const auto notes = [](bool& flag) -> Task<int> {
    flag = true;
    co_await sleep_for(1h);
    co_return 0;
  };
  async_run(scope, notes(started), asio::bind_cancellation_slot(signal.slot(), handler()));
  signal.emit(asio::cancellation_type::terminal);
  io.run_for(10s);
  EXPECT_FALSE(started);
  EXPECT_EQ(log, Log{error_code(asio::error::operation_aborted).message()});
  scope.cancel();
  io.restart();
  io.run();
}
TEST_F(AttachedTest, a_cancel_between_the_start_and_the_first_wait_is_not_lost) {
  for (int turns = 0; turns < 8; ++turns) {  // between any two steps of the reactor
    Reactor reactor(io);
    RootScope scope(reactor);
    asio::cancellation_signal signal;
    async_run(scope, for_ever(), asio::bind_cancellation_slot(signal.slot(), handler()));
    for (int turn = 0; turn < turns; ++turn) io.poll_one();
    signal.emit(asio::cancellation_type::terminal);
    io.run_for(10s);
    EXPECT_EQ(log, Log{error_code(asio::error::operation_aborted).message()}) << "after " << turns;
    scope.cancel();
    io.restart();
    io.run();
    io.restart();
    log.clear();
  }
}
TEST_F(AttachedTest, the_first_of_a_group_ends_it_also_if_the_others_have_not_started) {
  Reactor reactor(io);
  RootScope scope(reactor);
  const auto ended = [this](std::array<std::size_t, 2> order, error_code code, const Result<int>&) {
    log.push_back(std::to_string(order[0]) + " first, " + code.message());
  };
  asio::experimental::make_parallel_group(asio::post(io, asio::deferred), async_run(scope, for_ever(), asio::deferred))
      .async_wait(asio::experimental::wait_for_one(), asio::bind_executor(io, ended));
  io.run_for(10s);
  EXPECT_EQ(log, Log{"0 first, " + error_code(asio::error::operation_aborted).message()});
  scope.cancel();
  io.restart();
  io.run();
}
Task<int> throws_a_number() {
  co_await yield();
  throw 42;
}
TEST_F(AttachedTest, an_exception_of_a_task_is_its_own_failure) {
  Reactor reactor(io);
  RootScope scope(reactor);
  const auto throws = []() -> Task<int> {
    co_await yield();
    throw std::runtime_error("boom");
  };
  async_run(scope, throws_a_number(), handler());
  async_run(scope, throws(), handler());
  async_run(scope, answers(42), handler());
  io.run();
  const std::string fault = error_code(asio::error::fault).message();
  EXPECT_EQ(log, (Log{fault, fault, "42"})) << "the third is a sibling";
  EXPECT_FALSE(scope.cancelled());
  EXPECT_FALSE(scope.exception());
}
TEST_F(AttachedTest, a_scope_that_is_cancelled_completes_its_handlers_with_operation_aborted) {
  Reactor reactor(io);
  RootScope scope(reactor);
  async_run(scope, for_ever(), handler());
  asio::post(io, [&] { scope.cancel(); });
  io.run();
  EXPECT_EQ(log, Log{error_code(asio::error::operation_aborted).message()});
}
TEST_F(AttachedTest, a_closed_scope_completes_the_handler_at_once) {
  Reactor reactor(io);
  RootScope scope(reactor);
  scope.close();
  async_run(scope, for_ever(), handler());
  io.run();
  EXPECT_EQ(log, Log{error_code(asio::error::operation_aborted).message()});
}
TEST_F(AttachedTest, a_grant_from_another_thread_wakes_the_context) {
  Reactor reactor(io);
  RootScope scope(reactor);
  Semaphore semaphore("slots", 1);
  auto held = semaphore.try_acquire();
  const auto acquires = [](Semaphore& from) -> Task<int> {
    const auto permit = co_await from.acquire();
    co_return 7;
  };
  const auto work = asio::make_work_guard(io);
  async_run(scope, acquires(semaphore), asio::bind_executor(io, [&](error_code, Result<int> result) {
              log.push_back(std::to_string(*result));
              io.stop();
            }));
  std::thread releaser([&] {
    while (semaphore.waiting() == 0) std::this_thread::yield();
    held.reset();
  });
  io.run();
  releaser.join();
  EXPECT_EQ(log, Log{"7"});
}
TEST_F(AttachedTest, may_be_destroyed_before_the_context_with_work_left) {
  {
    Reactor reactor(io);
    RootScope scope(reactor);
    async_run(scope, for_ever(), handler());
    io.poll();
    scope.cancel();
    while (!scope.idle()) io.poll_one();
  }
  io.restart();
  io.run();
  EXPECT_EQ(log, Log{error_code(asio::error::operation_aborted).message()});
}

}  // namespace
}  // namespace stint
