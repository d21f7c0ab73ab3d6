// Blocking code on a bounded pool of threads. Tests that depend on order run on the simulator, where calls run in
// place.
#include "stint/offload.hpp"

#include "stint/asio.hpp"
#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

namespace stint {
namespace {

/// Blocks calls until it is opened.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait_for(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return inside_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool open_ = false;
};

TEST(Offload, runs_on_another_thread_and_returns_the_functions_result) {
  BlockingPool pool("files", 2);
  const auto here = std::this_thread::get_id();
  const auto body = [&]() -> Task<Result<>> {
    STINT_CO_TRY(const auto there, co_await offload(pool, [] { return std::this_thread::get_id(); }));
    EXPECT_NE(there, here);
    EXPECT_EQ(std::this_thread::get_id(), here);
    const auto refuses = []() -> Result<int> { return fail(Errc::denied, "no"); };
    const Result<int> refused = co_await offload(pool, refuses);
    EXPECT_EQ(refused.error(), Errc::denied);
    int seen = 0;
    STINT_CO_CHECK(co_await offload(pool, [&seen] { seen = 7; }));
    EXPECT_EQ(seen, 7);
    try {
      (void)co_await offload(pool, []() -> int { throw std::runtime_error("boom"); });
      ADD_FAILURE();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "boom");
    }
    co_return Result<>();
  };
  EXPECT_TRUE(run(body()));
  EXPECT_EQ(pool.running(), 0u);
}

TEST(Offload, never_more_calls_than_threads) {
  constexpr int kCalls = 200;
  BlockingPool pool("files", 3);
  std::atomic<int> now = 0, most = 0, done = 0;
  const auto call = [&] {
    const int seen = ++now;
    for (int before = most; before < seen && !most.compare_exchange_weak(before, seen);) {
    }
    std::this_thread::yield();
    --now;
    ++done;
  };
  const auto body = [&]() -> Task<Result<>> {
    co_return co_await with_scope([&](Scope& scope) {
      for (int i = 0; i < kCalls; ++i) scope.spawn(offload(pool, call));
    });
  };
  EXPECT_TRUE(run(body()));
  EXPECT_EQ(done, kCalls);
  EXPECT_LE(most, 3);
}

TEST(Offload, a_cancel_removes_waiting_calls_and_waits_for_running_ones) {
  BlockingPool pool("files", 1);
  Gate gate;
  int waited = 0;
  Reactor reactor;
  RootScope scope(reactor);
  bool gone = false;
  scope.spawn([&]() -> Task<> {
    const auto keeps = [&] { gate.pass(); };
    struct Gone {
      ~Gone() { flag = true; }
      bool& flag;
    };
    const Gone mark{gone};
    (void)co_await offload(pool, keeps);
    ADD_FAILURE() << "a stop takes effect when the call has returned";
  });
  scope.spawn([&]() -> Task<> {
    (void)co_await offload(pool, [&waited] { ++waited; });
    ADD_FAILURE();
  });
  reactor.run_until([&] { return pool.running() == 1 && pool.waiting() == 1; });
  gate.wait_for(1);
  scope.cancel();
  reactor.run_until([&] { return scope.running() == 1; });
  EXPECT_FALSE(gone) << "the call uses the frame";
  EXPECT_EQ(pool.waiting(), 0u);
  gate.open();
  EXPECT_EQ(reactor.run(scope).error(), Errc::cancelled);
  EXPECT_TRUE(gone);
  EXPECT_EQ(waited, 0);
}

TEST(Offload, a_destroyed_executor_waits_for_the_call) {
  BlockingPool pool("files", 1);
  Gate gate;
  std::atomic<bool> ended = false;
  auto reactor = std::make_unique<Reactor>();
  RootScope scope(*reactor);
  scope.spawn([&]() -> Task<> {
    std::string of_the_frame(1000, 'x');
    const auto call = [&] {
      gate.pass();
      of_the_frame.assign(2000, 'y');
      ended = true;
    };
    (void)co_await offload(pool, call);
  });
  reactor->run_until([&] { return pool.running() == 1; });
  gate.wait_for(1);
  std::thread opener([&] { gate.open(); });
  reactor.reset();
  EXPECT_TRUE(ended);
  opener.join();
}

TEST(Offload, a_closed_pool_refuses_new_calls_and_finishes_running_ones) {
  BlockingPool pool("files", 1);
  Gate gate;
  Reactor reactor;
  RootScope scope(reactor);
  Log log;
  const auto call = [&](std::string name) -> Task<> {
    const Result<> ended = co_await offload(pool, [&] { gate.pass(); });
    log.push_back(name + (ended ? " ran" : " " + std::string(ended.error().what())));
  };
  scope.spawn(call("first"));
  reactor.run_until([&] { return pool.running() == 1; });
  scope.spawn(call("second"));
  reactor.run_until([&] { return pool.waiting() == 1; });
  pool.close();
  gate.open();
  EXPECT_TRUE(reactor.run(scope));
  ASSERT_EQ(log.size(), 2u);
  EXPECT_NE(std::ranges::find(log, "first ran"), log.end());
  EXPECT_NE(
      std::ranges::find_if(log, [](const auto& line) { return line.starts_with("second ") && line != "second ran"; }),
      log.end());
}

TEST(Offload, without_threads_calls_run_in_place_in_the_order_of_the_line) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    BlockingPool pool("files", 0);
    Simulator sim(seed);
    RootScope scope(sim);
    std::vector<int> order;
    for (int i = 0; i < 5; ++i) {
      scope.spawn([&, i]() -> Task<> {
        co_await sleep_for(std::chrono::seconds(i));
        EXPECT_TRUE(co_await offload(pool, [&order, i] { order.push_back(i); }));
      });
    }
    sim.settle();
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
    scope.cancel();
    scope.spawn(
        [&]() -> Task<> { (void)co_await offload(pool, [] { ADD_FAILURE() << "a cancelled chain begins no call"; }); });
    sim.settle();
  }
}

}  // namespace
}  // namespace stint
