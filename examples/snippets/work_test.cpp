// The code that docs/library.md shows of retries, worker pools, threads and Asio.
#include "stint/asio.hpp"
#include "stint/offload.hpp"
#include "stint/reactor_thread.hpp"
#include "stint/retry.hpp"
#include "stint/run_on.hpp"
#include "stint/scope.hpp"
#include "stint/testing.hpp"
#include "stint/worker_pool.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace stint {
namespace {

using namespace std::chrono_literals;

// [retry]
struct Upstream {
  int failures = 2;
  Task<Result<int>> ask() {
    co_await sleep_for(100ms);
    // Only the code that reports a failure knows whether the call may be repeated.
    if (failures-- > 0) co_return fail(Error(Errc::unavailable, Retry::safe, "529 overloaded"));
    co_return 42;
  }
};

Task<Result<int>> ask_with_retries(Upstream& upstream) {
  RetryPolicy policy;  // full jitter, three attempts, never past the deadline of the scope
  co_return co_await retry(policy, [&] { return upstream.ask(); });
}
// [/retry]

TEST(Work, retry_repeats_what_is_safe) {
  Simulator simulator;
  Upstream upstream;
  RootScope scope(simulator);
  scope.spawn([&]() -> Task<> { EXPECT_EQ(*co_await ask_with_retries(upstream), 42); });
  simulator.settle();
}

// [worker-pool]
Task<Result<int>> answer(std::string question, JobContext&) {
  co_await sleep_for(1s);
  co_return static_cast<int>(question.size());
}

Task<> use_pool(WorkerPool<std::string, int>& pool) {
  Result<int> reply = co_await pool.submit("how long is this?");  // waits for room, then for the result
  EXPECT_EQ(*reply, 17);
  Result<JobId> job = pool.submit_nowait("no time");  // an id, or `full` at once
  EXPECT_TRUE(job);
  auto report = co_await pool.drain(30s);  // accepts no more jobs, finishes the rest, leaves nothing behind
  EXPECT_EQ(report.finished, 1u);
}
// [/worker-pool]

TEST(Work, a_pool_answers_and_drains) {
  Simulator simulator;
  PoolOptions options;
  options.workers = 2;
  WorkerPool<std::string, int> pool(answer, options);
  RootScope scope(simulator);
  pool.start(scope);
  scope.spawn(use_pool(pool));
  simulator.settle();
  EXPECT_EQ(pool.health().total_completed, 2u);
}

// [run-on]
Task<std::thread::id> where_am_i() { co_return std::this_thread::get_id(); }

Task<Result<>> visit_other_thread(ReactorThread& other) {
  STINT_CO_TRY(const auto there,
               co_await run_on(other.executor(), where_am_i()));  // cancelling the caller ends the task there first
  EXPECT_NE(there, std::this_thread::get_id());
  co_return Result<>();
}

TEST(Work, run_on_goes_to_another_thread_and_comes_back) {
  ReactorThread other("other");  // a thread with its own reactor
  EXPECT_TRUE(run(visit_other_thread(other)));
}
// [/run-on]

// [offload]
Task<Result<std::string>> read_all(BlockingPool& files, std::string path) {
  co_return co_await offload(files, [path] {  // on a thread of the pool
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  });
}

TEST(Work, blocking_code_goes_to_a_pool_of_threads) {
  BlockingPool files("files", 2);
  EXPECT_TRUE(run(read_all(files, "/proc/self/status")).value().contains("State:"));
}
// [/offload]

// [reactor]
Task<> wait_with_asio(Reactor& reactor) {
  asio::steady_timer timer(reactor.io(), 1ms);
  auto [error] = co_await timer.async_wait(use_task);  // any Asio operation; cancellation waits for its handler
  EXPECT_FALSE(error);
}

TEST(Work, a_reactor_runs_a_scope) {
  Reactor reactor;  // an executor on this thread, with its own io_context
  RootScope scope(reactor);
  scope.spawn(wait_with_asio(reactor));
  EXPECT_TRUE(reactor.run(scope));  // until the scope is idle; returns its first failure, if any
}
// [/reactor]

// [from-asio]
void acquire_from_asio(asio::io_context& io, Semaphore& slots, Permit& held) {
  auto on_permit = [&](boost::system::error_code error, Permit permit) {
    if (!error) held = std::move(permit);  // keep it for the duration of the work
  };
  async_acquire(slots, 1, asio::bind_executor(io, on_permit));
}

void run_from_asio(asio::io_context& io, Scope& scope, Upstream& upstream, int& result) {
  auto on_end = [&](boost::system::error_code error, Result<int> answer) { result = error ? -1 : *answer; };
  async_run(scope, upstream.ask(), asio::bind_executor(io, on_end));  // gives access to everything else
}

TEST(Work, a_program_on_asio_uses_the_library) {
  asio::io_context io;
  Semaphore slots("slots", 1);
  Reactor reactor(io);  // attached: the thread that runs `io` runs it too
  RootScope scope(reactor);
  Upstream upstream;
  upstream.failures = 0;
  Permit held;
  int result = 0;
  acquire_from_asio(io, slots, held);
  run_from_asio(io, scope, upstream, result);
  io.run();
  EXPECT_EQ(held.units(), 1u);
  EXPECT_EQ(result, 42);
}
// [/from-asio]

}  // namespace
}  // namespace stint
