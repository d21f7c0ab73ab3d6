// The pool across threads: submitters, cancels, resizes and the drain come from other threads.
#include "stint/asio.hpp"
#include "worker_pool_test_support.hpp"

#include <random>
#include <thread>

namespace stint {
namespace {

/// A reactor on its own thread, with a pool on it.
class PoolThread {
 public:
  explicit PoolThread(const PoolOptions& options) {
    thread_ = std::thread([this, options] {
      Reactor reactor;
      RootScope scope(reactor);
      pool.start(scope);
      started.store(true, std::memory_order_release);
      EXPECT_TRUE(reactor.run(scope));  // until it is drained
    });
    while (!started.load(std::memory_order_acquire)) std::this_thread::yield();
    (void)pool.resize(options.workers);
  }
  ~PoolThread() { thread_.join(); }

  std::atomic<int> starts = 0, running = 0, most_running = 0;
  std::atomic<bool> started = false;
  WorkerPool<int, int> pool{[this](int value, JobContext& context) { return carry(value, context); },
                            {.workers = 0, .queue_capacity = 8}};

 private:
  Task<Result<int>> carry(int value, JobContext& context) {
    starts.fetch_add(1);
    struct Count {
      explicit Count(PoolThread& in) : at(in) {
        const int now = at.running.fetch_add(1) + 1;
        if (now > at.most_running.load()) at.most_running.store(now);
      }
      ~Count() { at.running.fetch_sub(1); }
      PoolThread& at;
    } const count(*this);
    if (value < 0) co_await sleep_until(TimePoint::max());
    for (int i = 0; i < value % 4; ++i) co_await yield();
    if (value % 16 == 15) {
      context.beat();
      co_await sleep_for(1ms);
    }
    if (value % 5 == 4) co_return fail(Errc::failed, "every fifth");
    co_return value;
  }
  std::thread thread_;
};

using IntPool = WorkerPool<int, int>;

IntPool::DrainReport blocking_drain(IntPool& pool, Duration timeout) {
  Reactor reactor;
  RootScope scope(reactor);
  std::optional<IntPool::DrainReport> report;
  const auto body = [](IntPool& which, Duration how_long, std::optional<IntPool::DrainReport>& into) -> Task<> {
    into = co_await which.drain(how_long);
  };
  scope.spawn(body(pool, timeout, report));
  EXPECT_TRUE(reactor.run(scope));
  return std::move(*report);
}

TEST(PoolThreads, submitters_on_other_threads_get_their_results_on_their_own_thread) {
  PoolThread at({.workers = 3});
  constexpr int kThreads = 3, kJobs = 2000;
  std::atomic<int> good = 0, bad = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      Reactor reactor;
      RootScope scope(reactor);
      const auto call = [](IntPool& pool, int value, std::thread::id own, std::atomic<int>& ok,
                           std::atomic<int>& failed) -> Task<> {
        const auto result = co_await pool.submit(value);
        EXPECT_EQ(std::this_thread::get_id(), own);
        ++(result ? ok : failed);
        if (result) EXPECT_EQ(*result, value);
      };
      for (int i = 0; i < kJobs; ++i) scope.spawn(call(at.pool, i, std::this_thread::get_id(), good, bad));
      EXPECT_TRUE(reactor.run(scope));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good + bad, kThreads * kJobs);
  EXPECT_EQ(bad, kThreads * kJobs / 5);
  EXPECT_LE(at.most_running, 3);
  const auto report = blocking_drain(at.pool, 10s);
  EXPECT_EQ(report.handed_back, 0u);
  EXPECT_EQ(at.pool.health().total_completed, static_cast<std::uint64_t>(good));
}

TEST(PoolThreads, submit_nowait_cancel_resize_and_health_from_threads_without_an_executor) {
  PoolThread at({.workers = 2});
  std::atomic<std::uint64_t> accepted = 0, refused = 0, done = 0;
  at.pool.on_done([&done](JobId, Result<int>) { ++done; });
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      JobId last;
      for (int i = 0; i < 4000; ++i) {
        const auto id = at.pool.submit_nowait(static_cast<int>(random() % 100));
        ++(id ? accepted : refused);
        if (id) last = *id;
        if (random() % 8 == 0) at.pool.cancel(last);
        if (random() % 64 == 0) (void)at.pool.resize(random() % 5);
        if (random() % 64 == 0) EXPECT_LE(at.pool.health().utilization, 1.0);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(at.pool.resize(2));
  const auto report = blocking_drain(at.pool, 10s);
  EXPECT_EQ(accepted, done + report.jobs.size());
  const PoolHealth seen = at.pool.health();
  EXPECT_EQ(seen.total_accepted, accepted);
  EXPECT_EQ(seen.total_accepted,
            seen.total_completed + seen.total_failed + seen.total_cancelled + seen.total_handed_back);
  EXPECT_EQ(at.running, 0);
  EXPECT_LE(at.most_running, 4);
}

Task<> submits_for_ever(IntPool& pool, int value, std::atomic<int>& answered) {
  while (true) {
    const auto result = co_await pool.submit(value);
    if (!result && result.error() == Errc::closed) co_return;
    answered.fetch_add(1);
  }
}
TEST(PoolThreads, a_hanging_job_is_cancelled_with_its_caller_on_another_thread) {
  PoolThread at({.workers = 2});
  Reactor reactor;
  RootScope scope(reactor);
  std::atomic<int> answered = 0;
  for (int i = 0; i < 2; ++i) scope.spawn(submits_for_ever(at.pool, -1, answered));
  const auto until_running = [](PoolThread& pool_thread) -> Task<> {
    while (pool_thread.running < 2) co_await yield();
  };
  RootScope watch(reactor);
  watch.spawn(until_running(at));
  EXPECT_TRUE(reactor.run(watch));
  scope.cancel();
  EXPECT_EQ(reactor.run(scope).error(), Errc::cancelled);  // ends only when the jobs are gone
  EXPECT_EQ(at.running, 0);
  const JobId hanging = *at.pool.submit_nowait(-1);
  while (at.running < 1) std::this_thread::yield();
  EXPECT_TRUE(at.pool.cancel(hanging));
  while (at.running != 0) std::this_thread::yield();
  (void)at.pool.submit_nowait(-1);
  while (at.running < 1) std::this_thread::yield();
  EXPECT_EQ(blocking_drain(at.pool, 0s).cancelled, 1u);
  EXPECT_EQ(at.pool.health().total_cancelled, 4u);
}
TEST(PoolThreads, callers_that_go_away_on_other_threads_leave_nothing_running) {
  PoolThread at({.workers = 3});
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Reactor reactor;
      std::minstd_rand random(t + 1);
      for (int round = 0; round < 150; ++round) {
        RootScope scope(reactor);
        std::atomic<int> answered = 0;
        for (int i = 0; i < 12; ++i) scope.spawn(submits_for_ever(at.pool, static_cast<int>(random() % 64), answered));
        const int enough = static_cast<int>(random() % 40);
        reactor.run_until([&] { return answered >= enough; });
        scope.cancel();
        EXPECT_EQ(reactor.run(scope).error(), Errc::cancelled);  // joined: queued jobs removed, running ones ended
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const PoolHealth seen = at.pool.health();
  EXPECT_EQ(seen.queue_size, 0u);
  EXPECT_EQ(seen.waiting_for_room, 0u);
  EXPECT_EQ(seen.pool_size, 3u) << "no worker was lost";
  EXPECT_EQ(at.running, 0);
  EXPECT_EQ(seen.total_accepted, seen.total_completed + seen.total_failed + seen.total_cancelled);
  blocking_drain(at.pool, 10s);
}

TEST(PoolThreads, callers_whose_executor_is_destroyed_leave_nothing_running) {
  PoolThread at({.workers = 3});
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      for (int round = 0; round < 100; ++round) {
        auto reactor = std::make_unique<Reactor>();
        RootScope scope(*reactor);
        std::atomic<int> answered = 0;
        for (int i = 0; i < 12; ++i) scope.spawn(submits_for_ever(at.pool, static_cast<int>(random() % 64), answered));
        const int enough = static_cast<int>(random() % 40);
        reactor->run_until([&] { return answered >= enough; });
        reactor.reset();  // with jobs waiting, queued, assigned, running and ended
      }
    });
  }
  for (auto& thread : threads) thread.join();
  blocking_drain(at.pool, 10s);
  const PoolHealth seen = at.pool.health();
  EXPECT_EQ(at.running, 0);
  EXPECT_EQ(seen.total_handed_back, 0u);
  EXPECT_EQ(seen.total_accepted, seen.total_completed + seen.total_failed + seen.total_cancelled);
}

TEST(PoolThreads, a_drain_from_another_thread_releases_callers_on_all_threads) {
  for (int round = 0; round < 20; ++round) {
    PoolThread at({.workers = 2});
    std::atomic<int> answered = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&at, &answered, t] {
        Reactor reactor;
        RootScope scope(reactor);
        for (int i = 0; i < 50; ++i) scope.spawn(submits_for_ever(at.pool, i + t, answered));
        EXPECT_TRUE(reactor.run(scope));  // until every caller got `closed`
      });
    }
    while (answered < 100) std::this_thread::yield();
    const auto report = blocking_drain(at.pool, round % 2 == 0 ? Duration(10s) : Duration(0s));
    for (auto& thread : threads) thread.join();
    EXPECT_TRUE(report.jobs.empty());
    EXPECT_EQ(at.running, 0);
    const PoolHealth seen = at.pool.health();
    EXPECT_EQ(seen.total_accepted,
              seen.total_completed + seen.total_failed + seen.total_cancelled + seen.total_handed_back);
  }
}

}  // namespace
}  // namespace stint
