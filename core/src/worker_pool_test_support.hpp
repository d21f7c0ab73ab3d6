/// Shared by the tests of the worker pool: a job that specifies how it ends, and a pool on the simulator.
#pragma once

#include "stint/testing.hpp"
#include "stint/worker_pool.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>

namespace stint {

struct Work {
  int value = 0;
  Duration takes{};
  enum class End : std::uint8_t { succeeds, fails, throws, hangs } end = End::succeeds;
};
using Pool = WorkerPool<Work, int>;

inline PoolOptions sized(std::size_t workers, std::size_t queue = 100) {
  PoolOptions options;
  options.workers = workers;
  options.queue_capacity = queue;
  return options;
}

struct Hall {  // what the handler recorded
  Log log;
  std::vector<int> started;
  int running = 0, most_running = 0, gone = 0;
  Semaphore never{"never", 0};  // hanging jobs wait for this: no timer that the simulator could jump to
};

/// Counts running jobs, however they end.
inline Task<Result<int>> carry_work(Hall& hall, Work work, JobContext&) {
  hall.started.push_back(work.value);
  hall.most_running = std::max(hall.most_running, ++hall.running);
  struct Leaving {
    ~Leaving() {
      --hall.running;
      ++hall.gone;
    }
    Hall& hall;
  } const leaving{hall};
  if (work.end == Work::End::hangs) (void)co_await hall.never.acquire();
  if (work.takes != Duration::zero()) co_await sleep_for(work.takes);
  if (work.end == Work::End::throws) throw std::runtime_error("boom");
  if (work.end == Work::End::fails) co_return fail(Errc::failed, "the work failed");
  co_return work.value * 10;
}

struct PoolTest : testing::Test {
  Pool& open(PoolOptions options = {}) {
    pool.emplace(
        scope, [this](Work work, JobContext& context) { return carry_work(hall, work, context); }, std::move(options));
    run_ready();
    return *pool;
  }
  void run_ready() { sim.run_ready(); }

  /// Spawns a caller in its own scope; its result is in `answers`.
  Scope& submit(Work work, JobOptions options = {}) {
    callers.push_back(std::make_unique<RootScope>(sim));
    const auto call = [](Pool& to, Work what, JobOptions how, PoolTest& test, int number) -> Task<> {
      auto answer = co_await to.submit(what, std::move(how));
      test.answers.emplace(number, std::move(answer));
    };
    callers.back()->spawn(call(*pool, work, std::move(options), *this, static_cast<int>(callers.size()) - 1));
    run_ready();
    return *callers.back();
  }
  /// Runs a task to completion.
  template <class T>
  T run(Task<T> task) {
    RootScope own(sim);
    std::optional<T> result;
    const auto wrap = [](Task<T> inner, std::optional<T>& into) -> Task<> { into.emplace(co_await std::move(inner)); };
    own.spawn(wrap(std::move(task), result));
    EXPECT_TRUE(sim.run_until([&] { return own.idle(); }));
    return std::move(*result);
  }
  Pool::DrainReport drain(Duration timeout = 1h) { return run(pool->drain(timeout)); }
  PoolHealth health() const { return pool->health(); }
  /// Every accepted job has ended exactly once.
  void expect_adds_up() const {
    const PoolHealth seen = health();
    std::uint64_t carried = 0;
    for (const WorkerHealth& worker : seen.workers) carried += worker.job.has_value();
    EXPECT_EQ(seen.total_accepted, seen.total_completed + seen.total_failed + seen.total_cancelled +
                                       seen.total_handed_back + seen.queue_size + carried);
  }
  void TearDown() override {
    if (!pool) return;
    expect_adds_up();
    run(pool->stop());
    expect_adds_up();
    EXPECT_EQ(hall.running, 0);
    pool.reset();
    sim.settle();
    for (auto& caller : callers) EXPECT_TRUE(caller->idle());
    EXPECT_TRUE(scope.idle()) << "something of the pool was left behind";
  }

  Hall hall;
  std::map<int, Result<int>> answers;  // by caller
  Simulator sim{1};
  RootScope scope{sim};
  std::vector<std::unique_ptr<RootScope>> callers;
  std::optional<Pool> pool;
};

}  // namespace stint
