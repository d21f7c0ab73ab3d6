// The Asio interface across threads: contexts destroyed while permits are released, operations that complete on one
// thread while they are cancelled on another. A race may need many rounds to show; sanitizer builds add another check.
#include "semaphore_test_support.hpp"
#include "stint/asio.hpp"
#include "threads_test_support.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/thread_pool.hpp>

#include <future>
#include <thread>
#include <utility>

namespace stint {
namespace {

using boost::system::error_code;

/// Reports when its context begins to shut it down; the youngest service is first.
template <int>
class Watch final : public asio::execution_context::service {
 public:
  using key_type = Watch;
  static inline asio::execution_context::id id;
  explicit Watch(asio::execution_context& context) : service(context) {}
  std::promise<void>* reached = nullptr;

 private:
  void shutdown() override {  // Boost 1.83 calls it twice: at the end of io_context and of its base
    if (std::promise<void>* const first = std::exchange(reached, nullptr)) first->set_value();
  }
};

Task<> takes(Semaphore& semaphore) { (void)co_await semaphore.acquire(); }

TEST(TokenThreads, a_context_is_not_destroyed_while_another_thread_is_about_to_complete_its_acquire) {
  Semaphore semaphore("slots", 2);
  auto held = semaphore.try_acquire(2);
  auto io = std::make_unique<asio::io_context>();
  std::promise<void> begun, past;
  asio::use_service<Watch<0>>(*io).reached = &past;  // older than the acquires' own service: shut down after it
  async_acquire(semaphore, 1, asio::bind_executor(*io, [](error_code, Permit) { FAIL(); }));
  asio::use_service<Watch<1>>(*io).reached = &begun;
  SleepyExecutor sleepy;
  RootScope scope(sleepy);
  scope.spawn(takes(semaphore));
  sleepy.run_ready();
  ASSERT_EQ(semaphore.waiting(), 2u);

  std::thread destroyer;
  bool waits = false;
  sleepy.on_wake = [&] {  // both are granted; this one is woken first, the context's wake-up is still pending
    sleepy.on_wake = nullptr;
    destroyer = std::thread([&io] { io.reset(); });
    begun.get_future().wait();
    waits = past.get_future().wait_for(50ms) == std::future_status::timeout;
  };
  held.reset();
  destroyer.join();
  EXPECT_TRUE(waits) << "the context went with a completion on its way to it";
  sleepy.run_ready();
  EXPECT_EQ(semaphore.available(), 2);
}

TEST(TokenThreads, a_release_concurrent_with_the_end_of_a_context_loses_nothing) {
  Semaphore semaphore("slots", 1);
  std::optional<Permit> held;
  int lost = 0;
  race_rounds(
      rounds(3000),
      [&](int round, auto begin, auto end) {
        auto io = std::make_unique<asio::io_context>();
        held = semaphore.try_acquire();
        async_acquire(semaphore, 1, asio::bind_executor(*io, [](error_code, Permit) { FAIL(); }));
        begin();
        dawdle(static_cast<std::uint64_t>(round % 2 == 0 ? round / 2 % 128 : 0));
        io.reset();
        end();
        lost += semaphore.available() != 1 || semaphore.waiting() != 0;
      },
      [&](int round) {
        dawdle(static_cast<std::uint64_t>(round % 2 == 0 ? 0 : round / 2 % 128));
        held.reset();
      });
  EXPECT_EQ(lost, 0);
}

TEST(TokenThreads, a_cancel_concurrent_with_a_grant_on_another_thread_has_one_outcome) {
  Semaphore semaphore("slots", 1);
  std::optional<Permit> held;
  std::optional<asio::cancellation_signal> signal;
  asio::thread_pool pool(1);
  int granted = 0, lost = 0;
  const auto cancel = [&signal] { signal->emit(asio::cancellation_type::terminal); };
  const int count = race_rounds(
      rounds(3000),
      [&](int round, auto begin, auto end) {
        std::atomic<int> outcome = -1;
        signal.emplace();
        held = semaphore.try_acquire();
        async_acquire(semaphore, 1,
                      asio::bind_cancellation_slot(
                          signal->slot(), asio::bind_executor(pool, [&outcome](error_code code, Permit permit) {
                            EXPECT_EQ(static_cast<bool>(permit), !code);
                            permit.release();
                            outcome = code ? 0 : 1;
                          })));
        begin();
        dawdle(static_cast<std::uint64_t>(round / 2 % 128));
        round % 2 == 0 ? cancel() : held.reset();
        end();
        while (outcome < 0) std::this_thread::yield();
        granted += outcome;
        lost += semaphore.available() != 1;
      },
      [&](int round) { round % 2 == 0 ? held.reset() : cancel(); });
  pool.join();
  EXPECT_EQ(lost, 0);
  std::printf("  granted %d of %d times\n", granted, count);  // how many depends on the machine's load
}

// ---- use_task ------------------------------------------------------------------------------------------------------

/// A context that another thread runs.
class ElsewhereIo {
 public:
  ~ElsewhereIo() {
    work_.reset();
    thread_.join();
  }
  asio::io_context io;

 private:
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io);
  std::thread thread_{[this] { io.run(); }};
};

/// An Asio operation that calls its handler on its own thread, ignoring the handler's executor.
auto on_a_thread(std::vector<std::thread>& threads) {
  return asio::async_initiate<const UseTask, void(int)>(
      [&threads](auto handler) { threads.emplace_back([handler]() mutable { handler(42); }); }, use_task);
}
Task<> awaits_thread(std::vector<std::thread>& threads, std::thread::id& resumed_on, int& value) {
  std::tie(value) = co_await on_a_thread(threads);
  resumed_on = std::this_thread::get_id();
}
TEST(UseTaskThreads, a_handler_called_on_another_thread_completes_on_the_reactors_thread) {
  Reactor reactor;
  RootScope scope(reactor);
  std::vector<std::thread> threads;
  std::thread::id resumed_on;
  int value = 0;
  scope.spawn(awaits_thread(threads, resumed_on, value));
  reactor.run_until([&] { return scope.idle(); });
  threads.front().join();
  EXPECT_EQ(value, 42);
  EXPECT_EQ(resumed_on, std::this_thread::get_id());
}

/// Completes on `io` and calls its handler on the handler's executor, as Asio's own operations do.
auto on_io(asio::io_context& io, std::thread::id& handled_on) {
  return asio::async_initiate<const UseTask, void(int)>(
      [&io, &handled_on](auto handler) {
        asio::post(io, [&io, &handled_on, handler]() mutable {
          const auto executor = asio::get_associated_executor(handler, io.get_executor());
          asio::dispatch(executor, [&handled_on, handler]() mutable {
            handled_on = std::this_thread::get_id();
            handler(1);
          });
        });
      },
      use_task);
}
Task<> awaits_io(asio::io_context& io, std::thread::id& handled_on) { (void)co_await on_io(io, handled_on); }
TEST(UseTaskThreads, the_handler_of_an_operation_on_another_context_runs_on_the_coroutines_thread) {
  Reactor reactor;
  ElsewhereIo elsewhere;
  RootScope scope(reactor);
  std::thread::id handled_on;
  scope.spawn(awaits_io(elsewhere.io, handled_on));
  reactor.run_until([&] { return scope.idle(); });
  EXPECT_EQ(handled_on, std::this_thread::get_id());
}

Task<> awaits_timer(asio::io_context& io, Duration duration, int& ended) {
  asio::steady_timer timer(io, duration);
  (void)co_await timer.async_wait(use_task);
  ++ended;
}
TEST(UseTaskThreads, a_cancel_concurrent_with_the_end_of_an_operation_on_another_context_has_one_outcome) {
  Reactor reactor;
  ElsewhereIo elsewhere;
  int ended = 0;
  for (int round = 0; round < rounds(2000); ++round) {
    RootScope scope(reactor);
    scope.spawn(awaits_timer(elsewhere.io, round % 2 == 0 ? round % 64 * 1us : 1h, ended));
    bool turned = false;
    asio::post(reactor.io(), [&turned] { turned = true; });
    reactor.run_until([&turned] { return turned; });  // the wait has begun
    for (volatile int left = round % 256; left > 0; left = left - 1) {
    }
    scope.cancel();
    reactor.run_until([&scope] { return scope.idle(); });
  }
  EXPECT_LE(ended, rounds(2000) / 2) << "a timer of an hour ended";
}

// ---- A reactor on the program's own context ------------------------------------------------------------------------

Task<int> acquires(Semaphore& from) {
  const auto permit = co_await from.acquire();
  co_return 7;
}
/// Returns the permit only after `io.run()` had time to return too early.
template <class Returned>
std::thread releases_late(Semaphore& semaphore, std::optional<Permit>& held, Returned& returned) {
  return std::thread([&] {
    while (semaphore.waiting() == 0) std::this_thread::yield();
    (void)returned.get_future().wait_for(50ms);
    held.reset();
  });
}
TEST(AttachedThreads, a_context_runs_until_a_task_that_waits_for_another_threads_permit_has_ended) {
  asio::io_context io;
  Reactor reactor(io);
  RootScope scope(reactor);
  Semaphore semaphore("slots", 1);
  auto held = semaphore.try_acquire();
  std::promise<void> returned;
  int got = 0;
  const auto keeps = [](Semaphore& from, int& into) -> Task<> { into = co_await acquires(from); };
  scope.spawn(keeps(semaphore, got));
  std::thread releaser = releases_late(semaphore, held, returned);
  io.run();
  returned.set_value();
  EXPECT_EQ(got, 7) << "the context was done while a child still waited";
  releaser.join();
  scope.cancel();
  io.restart();
  io.run();
  EXPECT_TRUE(scope.idle());
}

}  // namespace
}  // namespace stint
