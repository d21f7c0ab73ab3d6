// The workers of a pool: states, heartbeats, manual resizing and autoscaling.
#include "worker_pool_test_support.hpp"

#include <set>

namespace stint {
namespace {

using PoolWorkers = PoolTest;
using PoolAutoscale = PoolTest;

std::set<std::uint32_t> ids(const PoolHealth& health) {
  std::set<std::uint32_t> found;
  for (const WorkerHealth& worker : health.workers) found.insert(worker.id.number);
  return found;
}
std::set<std::uint32_t> busy_ids(const PoolHealth& health) {
  std::set<std::uint32_t> found;
  for (const WorkerHealth& worker : health.workers) {
    if (worker.job) found.insert(worker.id.number);
  }
  return found;
}

// ---- States --------------------------------------------------------------------------------------------------------

TEST(PoolStates, busy_does_not_overwrite_draining) {
  using enum WorkerState;
  EXPECT_FALSE(may_become(draining, busy));
  EXPECT_FALSE(may_become(draining, idle));
  EXPECT_TRUE(may_become(draining, stopped));
  for (const WorkerState any : {idle, busy, draining, stopped}) {
    EXPECT_FALSE(may_become(stopped, any)) << "stopped is final";
    EXPECT_FALSE(may_become(any, any));
  }
  EXPECT_TRUE(may_become(idle, busy) && may_become(busy, idle));
  EXPECT_TRUE(may_become(idle, draining) && may_become(busy, draining));
}
TEST(PoolStates, ids_are_formatted) {
  EXPECT_EQ(to_string(WorkerId{0}), "worker-000");
  EXPECT_EQ(to_string(WorkerId{1234}), "worker-1234");
  EXPECT_EQ(to_string(JobId{17, 3}), "job-17");
}
TEST_F(PoolWorkers, a_draining_worker_stays_draining_while_it_runs_queued_jobs) {
  open(sized(1));
  (void)pool->submit_nowait({1, 1s});
  (void)pool->submit_nowait({2, 1s});
  run_ready();
  scope.spawn([](Pool& which) -> Task<> { (void)co_await which.drain(1h); }(*pool));
  run_ready();
  EXPECT_EQ(health().workers.at(0).state, WorkerState::draining);
  sim.advance(1s);
  EXPECT_EQ(hall.started, (std::vector{1, 2}));
  EXPECT_EQ(health().workers.at(0).state, WorkerState::draining);
  EXPECT_EQ(health().workers.at(0).job->number, 2u);
  sim.advance(1s);
  EXPECT_EQ(health().pool_size, 0u);
}
TEST_F(PoolWorkers, average_time_counts_successes_only) {
  open(sized(1));
  for (const Work& work : {Work{1, 2s}, Work{2, 4s}, Work{3, 90s, Work::End::fails}, Work{4, 30s, Work::End::throws}}) {
    (void)pool->submit_nowait(work);
  }
  const JobId hopeless = *pool->submit_nowait({5, 1h});
  sim.advance(150s);
  EXPECT_TRUE(pool->cancel(hopeless));
  run_ready();
  const WorkerHealth worker = health().workers.at(0);
  EXPECT_EQ(worker.completed, 2u);
  EXPECT_EQ(worker.failed, 2u);
  EXPECT_EQ(worker.cancelled, 1u);
  EXPECT_EQ(worker.avg_time, 3s);
  EXPECT_EQ(worker.avg_failed_time, 60s);
}
TEST_F(PoolWorkers, health_lists_the_job_of_each_worker) {
  open(sized(2));
  JobOptions options;
  options.label = "review 42";
  (void)pool->submit_nowait({1, 10s}, options);
  sim.advance(4s);
  const PoolHealth seen = health();
  EXPECT_EQ(seen.utilization, 0.5);
  EXPECT_EQ(busy_ids(seen).size(), 1u);
  for (const WorkerHealth& worker : seen.workers) {
    EXPECT_EQ(worker.state, worker.job ? WorkerState::busy : WorkerState::idle);
    if (!worker.job) continue;
    EXPECT_EQ(worker.job->number, 1u);
    EXPECT_EQ(worker.job_label, "review 42");
    EXPECT_EQ(worker.job_running_for, 4s);
  }
}

// ---- Signs of life -------------------------------------------------------------------------------------------------

struct PoolLife : testing::Test {
  enum class Kind : std::uint8_t { awaits, nested, hangs, hangs_later, brief };
  using LifePool = WorkerPool<Kind>;
  static Task<> ticks() {
    while (true) co_await sleep_for(50s);
  }
  static Task<Result<>> live(Kind kind, JobContext&) {
    switch (kind) {
      case Kind::awaits: co_await ticks(); break;
      case Kind::nested: (void)co_await with_deadline(Deadline(TimePoint(24h)), ticks()); break;
      case Kind::hangs_later: co_await sleep_for(50s); [[fallthrough]];
      case Kind::hangs: co_await sleep_until(TimePoint::max()); break;
      case Kind::brief: co_await sleep_for(300ms); break;
    }
    co_return Result<>();
  }
  std::size_t stale_after(Duration passed) {
    sim.advance(passed);
    return pool.health().stale_workers;
  }
  void TearDown() override {
    scope.spawn([](LifePool& which) -> Task<> { (void)co_await which.stop(); }(pool));
    EXPECT_TRUE(sim.run_until([this] { return scope.idle(); }));
  }
  Simulator sim{1};
  RootScope scope{sim};
  LifePool pool{scope, live, {.workers = 1}};
};

TEST_F(PoolLife, a_job_without_signs_of_life_makes_its_worker_stale) {
  (void)pool.submit_nowait(Kind::hangs);
  EXPECT_EQ(stale_after(120s), 0u);
  EXPECT_EQ(stale_after(1s), 1u);
  EXPECT_TRUE(pool.health().workers.at(0).stale);
  EXPECT_EQ(pool.health().workers.at(0).last_heartbeat_ago, 121s);
}
TEST_F(PoolLife, a_long_job_is_not_stale_while_its_awaits_resume) {
  (void)pool.submit_nowait(Kind::awaits);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(stale_after(60s), 0u) << i << " minutes";
  EXPECT_LE(pool.health().workers.at(0).last_heartbeat_ago, 60s);
}
TEST_F(PoolLife, a_job_that_hangs_after_progress_makes_its_worker_stale) {
  (void)pool.submit_nowait(Kind::hangs_later);
  EXPECT_EQ(stale_after(60s), 0u);
  EXPECT_EQ(pool.health().workers.at(0).last_heartbeat_ago, 0s) << "known to the last look";
  EXPECT_EQ(stale_after(120s), 0u);
  EXPECT_EQ(stale_after(1s), 1u);
}
TEST_F(PoolLife, progress_is_detected_through_nested_scopes) {
  (void)pool.submit_nowait(Kind::nested);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(stale_after(60s), 0u) << i << " minutes";
}
TEST_F(PoolLife, an_idle_worker_has_a_heartbeat_every_second) {
  sim.advance(1h + 300ms);
  const auto worker = pool.health().workers.at(0);
  EXPECT_EQ(worker.last_heartbeat_ago, 300ms);
  EXPECT_FALSE(worker.stale);
}
TEST_F(PoolLife, an_idle_workers_heartbeat_counts_from_the_end_of_its_job) {
  (void)pool.submit_nowait(Kind::brief);
  sim.advance(2500ms);
  EXPECT_EQ(pool.health().workers.at(0).last_heartbeat_ago, 200ms);
}
TEST_F(PoolWorkers, a_busy_worker_is_not_stale_while_its_job_beats) {
  const JobContext* context = nullptr;
  WorkerPool<int> beating(scope, [&context](int, JobContext& job) -> Task<Result<>> {
    context = &job;
    co_await sleep_until(TimePoint::max());  // a foreign library does the work and reports progress
    co_return Result<>();
  });
  (void)beating.submit_nowait(1);
  for (int i = 0; i < 10; ++i) {
    sim.advance(119s);
    EXPECT_EQ(beating.health().stale_workers, 0u);
    context->beat();
  }
  sim.advance(121s);
  EXPECT_EQ(beating.health().stale_workers, 1u);
  context->beat();
  EXPECT_EQ(beating.health().stale_workers, 0u);
  run(beating.stop());
}

// ---- Size ----------------------------------------------------------------------------------------------------------

TEST_F(PoolWorkers, stopped_workers_leave_the_list) {
  open(sized(5));
  EXPECT_TRUE(pool->resize(2));
  run_ready();
  EXPECT_EQ(health().workers.size(), 2u);
  EXPECT_EQ(health().pool_size, 2u);
}
TEST_F(PoolWorkers, ids_are_not_reused_after_scaling) {
  open(sized(3));
  std::set<std::uint32_t> ever = ids(health());
  for (int round = 0; round < 20; ++round) {
    EXPECT_TRUE(pool->resize(0));
    run_ready();
    EXPECT_TRUE(pool->resize(3));
    run_ready();
    for (const std::uint32_t id : ids(health())) EXPECT_TRUE(ever.insert(id).second) << to_string(WorkerId{id});
  }
  EXPECT_EQ(*ever.rbegin(), 62u);
}
TEST_F(PoolWorkers, scale_down_stops_the_chosen_worker) {
  open(sized(4));
  (void)pool->submit_nowait({1, 1h});
  (void)pool->submit_nowait({2, 1h});
  run_ready();
  const auto busy = busy_ids(health());
  const auto before = ids(health());
  EXPECT_TRUE(pool->resize(3));
  std::set<std::uint32_t> chosen;
  for (const WorkerHealth& worker : health().workers) {
    if (worker.state == WorkerState::draining) chosen.insert(worker.id.number);
  }
  EXPECT_EQ(chosen.size(), 1u) << "chosen at once";
  EXPECT_FALSE(busy.contains(*chosen.begin())) << "an idle one";
  (void)pool->submit_nowait({3, 1h});  // with a sentinel in the queue, the wrong worker could take it
  run_ready();
  auto expected = before;
  expected.erase(*chosen.begin());
  EXPECT_EQ(ids(health()), expected) << "the chosen one and no other";
  EXPECT_EQ(hall.running, 3);
}
TEST_F(PoolWorkers, the_longest_idle_worker_is_retired_first) {
  open(sized(3));
  (void)pool->submit_nowait({1, 1s});
  (void)pool->submit_nowait({2, 2s});
  run_ready();
  const auto warm = busy_ids(health());
  sim.advance(1min);
  EXPECT_TRUE(pool->resize(2));
  run_ready();
  EXPECT_EQ(ids(health()), warm);
}
TEST_F(PoolWorkers, the_last_worker_to_become_idle_gets_the_next_job) {
  open(sized(5));
  std::set<std::uint32_t> used;
  for (int i = 0; i < 10; ++i) {
    submit({i, 1s});
    used.merge(busy_ids(health()));
    sim.advance(1s);
  }
  EXPECT_EQ(used.size(), 1u) << "so that the others can be given up";
}
TEST_F(PoolWorkers, a_busy_worker_finishes_its_job_before_a_resize_retires_it) {
  open(sized(2));
  submit({1, 10s});
  submit({2, 20s});
  submit({3, 1s});
  EXPECT_TRUE(pool->resize(1));
  run_ready();
  EXPECT_EQ(health().pool_size, 2u);
  sim.advance(10s);
  EXPECT_EQ(*answers.at(0), 10);
  sim.advance(20s);
  EXPECT_EQ(*answers.at(1), 20);
  EXPECT_EQ(*answers.at(2), 30);
  EXPECT_EQ(health().pool_size, 1u);
}
TEST_F(PoolWorkers, resize_to_zero_pauses_and_health_still_works) {
  open(sized(2));
  EXPECT_TRUE(pool->resize(0));
  run_ready();
  submit({1, 1s});
  const PoolHealth seen = health();
  EXPECT_EQ(seen.pool_size, 0u);
  EXPECT_EQ(seen.utilization, 0.0) << "not a division by zero";
  EXPECT_EQ(seen.queue_size, 1u);
  sim.advance(1h);
  EXPECT_TRUE(hall.started.empty());
  EXPECT_TRUE(pool->resize(1));
  sim.advance(1s);
  EXPECT_EQ(*answers.at(0), 10);
}
TEST_F(PoolWorkers, health_at_zero_workers) {
  open(sized(0));
  EXPECT_EQ(health().utilization, 0.0);
  EXPECT_EQ(health().stale_workers, 0u);
  EXPECT_TRUE(health().workers.empty());
}
TEST_F(PoolWorkers, resizing_down_and_up_never_runs_more_workers_than_requested) {
  open(sized(4));
  for (int i = 0; i < 20; ++i) (void)pool->submit_nowait({i, 10s});
  run_ready();
  EXPECT_TRUE(pool->resize(0));
  EXPECT_TRUE(pool->resize(4));  // four still work, draining: they count
  run_ready();
  EXPECT_EQ(hall.running, 4);
  EXPECT_EQ(health().pool_size, 4u);
  sim.advance(1h);
  EXPECT_EQ(hall.most_running, 4);
  EXPECT_EQ(hall.gone, 20);
  EXPECT_EQ(ids(health()), (std::set<std::uint32_t>{4, 5, 6, 7}));
}
TEST_F(PoolWorkers, a_size_out_of_range_is_refused) {
  open(sized(1));
  EXPECT_EQ(pool->resize(1'000'000'000).error(), Errc::invalid);
  EXPECT_EQ(health().target_size, 1u);
}

// ---- Autoscale -----------------------------------------------------------------------------------------------------

PoolOptions scaling(std::size_t workers) {
  PoolOptions options = sized(workers);
  options.autoscale.emplace();
  return options;
}
TEST_F(PoolAutoscale, grows_under_load_and_shrinks_to_the_minimum_without_it) {
  open(scaling(2));
  for (int i = 0; i < 100; ++i) (void)pool->submit_nowait({i, 10min});
  run_ready();
  sim.advance(5min);
  EXPECT_EQ(health().pool_size, 50u);
  sim.advance(2h);
  EXPECT_EQ(health().pool_size, 2u);
  EXPECT_EQ(hall.gone, 100);
}
TEST_F(PoolAutoscale, stays_within_bounds_that_change) {
  AutoscaleOptions autoscale;
  autoscale.min = 1;
  autoscale.max = 4;
  Simulator sim;
  RootScope root(sim);
  WorkerPool<int, int> pool(root, [](int job, Scope&) -> Task<Result<int>> { co_return job; },
                            {.workers = 2, .autoscale = autoscale});
  sim.run_ready();
  EXPECT_EQ(pool.health().bounds, std::pair(std::size_t{1}, std::size_t{4}));
  EXPECT_EQ(pool.set_bounds(5, 4).error().code(), Errc::invalid);
  ASSERT_TRUE(pool.set_bounds(6, 9));
  EXPECT_EQ(pool.health().bounds, std::pair(std::size_t{6}, std::size_t{9}));
  sim.advance(11s);
  EXPECT_EQ(pool.health().pool_size, 6U);
  EXPECT_EQ(pool.free_workers(), 6U);
  root.cancel();
  sim.settle();
}

TEST_F(PoolAutoscale, retires_only_idle_workers) {
  open(scaling(20));
  for (int i = 0; i < 3; ++i) (void)pool->submit_nowait({i, 24h});
  run_ready();
  const auto busy = busy_ids(health());
  sim.advance(1h);
  EXPECT_EQ(hall.running, 3);
  EXPECT_EQ(busy_ids(health()), busy);
  EXPECT_LT(health().pool_size, 15u);
  for (const WorkerHealth& worker : health().workers) EXPECT_NE(worker.state, WorkerState::draining);
}
TEST_F(PoolAutoscale, counts_only_jobs_that_a_new_worker_could_start) {
  PoolOptions options = scaling(10);
  options.queue_capacity = 10;
  options.autoscale->up_utilization = 2;  // only the queue counts
  std::size_t startable = 0;
  options.startable_queue_size = [&startable] { return startable; };
  open(options);
  for (int i = 0; i < 20; ++i) (void)pool->submit_nowait({i, 24h});
  sim.advance(5min);
  EXPECT_EQ(health().pool_size, 10u) << "the queued ones wait for a limit: a worker more would wait there too";
  startable = 6;
  sim.advance(10s);
  EXPECT_EQ(health().pool_size, 12u);
}
TEST_F(PoolAutoscale, the_autoscaler_survives_an_exception) {
  PoolOptions options = scaling(2);
  int calls = 0;
  options.startable_queue_size = [&calls]() -> std::size_t {
    if (++calls <= 3) throw std::runtime_error("the hook failed");
    if (calls == 4) throw 5;
    return 0;
  };
  open(options);
  for (int i = 0; i < 20; ++i) (void)pool->submit_nowait({i, 24h});
  sim.advance(30s);
  EXPECT_EQ(health().pool_size, 2u);
  EXPECT_EQ(health().target_size, 2u);
  EXPECT_EQ(health().autoscale_errors, 3u);
  EXPECT_EQ(health().autoscale_last_error, "startable_queue_size: the hook failed");
  sim.advance(30s);
  EXPECT_EQ(health().autoscale_errors, 4u);
  EXPECT_GT(health().pool_size, 2u) << "it goes on";
}
TEST_F(PoolAutoscale, a_hook_may_call_the_pool) {
  PoolOptions options = scaling(2);
  JobId unwanted;
  options.startable_queue_size = [&]() -> std::size_t {
    pool->cancel(unwanted);
    return 0;
  };
  open(options);
  int done = 0;
  pool->on_done([&done](JobId, Result<int> result) { done += result.error() == Errc::cancelled; });
  for (int i = 0; i < 3; ++i) unwanted = *pool->submit_nowait({i, 1h});
  sim.advance(10s);
  EXPECT_EQ(done, 1) << "a request made while the supervisor was running is not lost";
  run(pool->stop());
}
TEST_F(PoolAutoscale, leaves_a_paused_pool_alone) {
  open(scaling(2));
  EXPECT_TRUE(pool->resize(0));
  for (int i = 0; i < 100; ++i) (void)pool->submit_nowait({i, 1s});
  sim.advance(1h);
  EXPECT_EQ(health().pool_size, 0u);
  EXPECT_TRUE(pool->resize(2));
  sim.advance(1h);
  EXPECT_EQ(hall.gone, 100);
}
TEST_F(PoolAutoscale, does_not_delay_a_drain) {
  open(scaling(2));
  sim.advance(15s);
  drain();
  EXPECT_EQ(sim.now(), TimePoint(15s));
  EXPECT_TRUE(scope.idle()) << "the autoscaler is gone too";
}

}  // namespace
}  // namespace stint
