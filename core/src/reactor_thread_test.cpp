#include "stint/reactor_thread.hpp"

#include "stint/asio.hpp"
#include "stint/queue.hpp"
#include "stint/run_on.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

namespace stint {
namespace {

Task<std::thread::id> where() {
  co_await yield();
  co_return std::this_thread::get_id();
}

TEST(ReactorThreadTest, tasks_run_on_it_and_come_back) {
  ReactorThread other("other");
  const auto body = [&]() -> Task<Result<>> {
    const auto here = std::this_thread::get_id();
    STINT_CO_TRY(const std::thread::id first, co_await run_on(other.executor(), where()));
    STINT_CO_TRY(const std::thread::id second, co_await run_on(other.executor(), where()));
    EXPECT_NE(first, here);
    EXPECT_EQ(first, second);
    EXPECT_EQ(std::this_thread::get_id(), here);
    co_return Result<>();
  };
  EXPECT_TRUE(run(body()));
}

TEST(ReactorThreadTest, several_share_one_semaphore) {
  Semaphore slots("slots", 2);
  std::atomic<int> now = 0, most = 0, done = 0;
  const auto work = [&]() -> Task<Result<>> {
    for (int i = 0; i < 50; ++i) {
      STINT_CO_TRY(const Permit permit, co_await slots.acquire());
      const int seen = ++now;
      for (int before = most; before < seen && !most.compare_exchange_weak(before, seen);) {
      }
      co_await yield();
      --now;
      ++done;
    }
    co_return Result<>();
  };
  {
    std::array<ReactorThread, 3> threads;
    const auto body = [&]() -> Task<Result<>> {
      co_return co_await with_scope([&](Scope& scope) {
        for (ReactorThread& thread : threads) {
          scope.spawn([&]() -> Task<Result<>> { co_return co_await run_on(thread.executor(), work()); });
        }
      });
    };
    EXPECT_TRUE(run(body()));
  }
  EXPECT_EQ(done, 150);
  EXPECT_LE(most, 2);
  EXPECT_EQ(slots.available(), 2);
}

TEST(ReactorThreadTest, a_reactor_thread_without_work_ends) {
  const ReactorThread idle("a name that is longer than the system's limit");
  EXPECT_FALSE(idle.executor().is_current());
}

}  // namespace
}  // namespace stint
