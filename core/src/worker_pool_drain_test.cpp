// The end of a pool: drain, forced drain, stop, a cancelled scope, a destroyed executor.
#include "worker_pool_test_support.hpp"

namespace stint {
namespace {

using PoolDrain = PoolTest;

Task<> drains(Pool& pool, Duration timeout, std::optional<Pool::DrainReport>& into) {
  into = co_await pool.drain(timeout);
}

TEST_F(PoolDrain, finishes_running_and_queued_jobs) {
  open(sized(2, 10));
  for (int i = 0; i < 6; ++i) submit({i, 10s, i == 3 ? Work::End::fails : Work::End::succeeds});
  const auto report = drain(1h);
  EXPECT_EQ(report.finished, 6u);
  EXPECT_EQ(report.cancelled, 0u);
  EXPECT_EQ(report.handed_back, 0u);
  EXPECT_EQ(report.time, 30s);
  run_ready();
  EXPECT_EQ(answers.size(), 6u);
  EXPECT_TRUE(scope.idle()) << "joins everything";
}
TEST_F(PoolDrain, an_idle_pool_drains_at_once) {
  open();
  const auto report = drain();
  EXPECT_EQ(report.finished + report.cancelled + report.handed_back, 0u);
  EXPECT_EQ(report.time, 0s);
  EXPECT_EQ(health().pool_size, 0u);
  EXPECT_TRUE(health().draining);
}
TEST_F(PoolDrain, drain_does_not_block_on_a_full_queue) {
  open(sized(1, 2));
  for (int i = 0; i < 3; ++i) (void)pool->submit_nowait({i, 10s});
  submit({3, 10s});
  EXPECT_EQ(health().queue_size, 2u);
  EXPECT_EQ(health().waiting_for_room, 1u);
  std::optional<Pool::DrainReport> report;
  scope.spawn(drains(*pool, 1h, report));
  run_ready();
  EXPECT_TRUE(health().draining);
  EXPECT_EQ(health().waiting_for_room, 0u);
  sim.advance(30s);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->finished, 3u);
}
TEST_F(PoolDrain, submits_during_drain_fail_at_once) {
  PoolOptions options = sized(1, 5);
  options.retry_after = 30s;
  open(options);
  submit({1, 10s});
  std::optional<Pool::DrainReport> report;
  scope.spawn(drains(*pool, 1h, report));
  run_ready();
  const auto refused = pool->submit_nowait({2});
  EXPECT_EQ(refused.error(), Errc::closed);
  EXPECT_EQ(refused.error().retry(), Retry::safe);
  EXPECT_EQ(refused.error().retry_after(), 30s);
  submit({3});
  EXPECT_EQ(answers.at(1).error(), Errc::closed);
  EXPECT_EQ(answers.at(1).error().retry_after(), 30s);
  const auto call = [](Pool& to) -> Task<bool> {
    const auto ticket = co_await to.enqueue({4});
    co_return !ticket && ticket.error() == Errc::closed;
  };
  EXPECT_TRUE(run(call(*pool)));
  EXPECT_EQ(sim.now(), TimePoint(0s)) << "at once";
  EXPECT_EQ(pool->resize(5).error(), Errc::closed);
  sim.advance(10s);
  EXPECT_TRUE(report);
}
TEST_F(PoolDrain, submitters_waiting_for_room_fail_with_closed) {
  open(sized(1, 1));
  for (int i = 0; i < 102; ++i) submit({i, 10s});
  EXPECT_EQ(health().waiting_for_room, 100u);
  std::optional<Pool::DrainReport> report;
  scope.spawn(drains(*pool, 1h, report));
  run_ready();
  EXPECT_EQ(answers.size(), 100u);
  for (const auto& [caller, answer] : answers) {
    EXPECT_EQ(answer.error(), Errc::closed);
    EXPECT_EQ(answer.error().retry(), Retry::safe);
    EXPECT_TRUE(answer.error().retry_after());
  }
  sim.advance(20s);
  EXPECT_EQ(report->finished, 2u) << "what was accepted is carried";
}
TEST_F(PoolDrain, at_the_timeout_running_jobs_are_cancelled_and_the_rest_handed_back) {
  open(sized(1, 5));
  std::vector<JobId> ids;
  for (int i = 0; i < 3; ++i) {
    JobOptions options;
    options.label = "label " + std::to_string(i);
    ids.push_back(*pool->submit_nowait({i, 40s}, options));
  }
  submit({3, 40s});
  const auto report = drain(60s);
  EXPECT_EQ(report.time, 60s);
  EXPECT_EQ(report.finished, 1u);
  EXPECT_EQ(report.cancelled, 1u);
  EXPECT_EQ(report.handed_back, 2u);
  ASSERT_EQ(report.jobs.size(), 1u) << "a waiting caller gets its own result";
  EXPECT_EQ(report.jobs[0].id, ids[2]);
  EXPECT_EQ(report.jobs[0].job.value, 2);
  EXPECT_EQ(report.jobs[0].label, "label 2");
  run_ready();
  EXPECT_EQ(answers.at(0).error(), Errc::closed);
  EXPECT_EQ(answers.at(0).error().retry(), Retry::safe);
  EXPECT_EQ(hall.started, (std::vector{0, 1}));
  EXPECT_EQ(hall.running, 0);
}
TEST_F(PoolDrain, the_default_timeout_is_a_minute) {
  open(sized(1, 5));
  (void)pool->submit_nowait({1, 1h});
  const auto report = run(pool->drain());
  EXPECT_EQ(report.time, 60s);
  EXPECT_EQ(report.cancelled, 1u);
}
TEST_F(PoolDrain, the_rest_may_be_cancelled_instead) {
  open(sized(1, 5));
  std::map<std::uint64_t, Result<int>> done;
  pool->on_done([&](JobId id, Result<int> result) { done.emplace(id.number, std::move(result)); });
  for (int i = 0; i < 3; ++i) (void)pool->submit_nowait({i, 1h});
  run_ready();
  const auto report = run(pool->stop());
  EXPECT_EQ(report.cancelled, 3u);
  EXPECT_EQ(report.handed_back, 0u);
  EXPECT_TRUE(report.jobs.empty());
  EXPECT_EQ(done.size(), 3u) << "every result is delivered before the drain ends";
  for (const auto& [id, result] : done) EXPECT_EQ(result.error(), Errc::cancelled);
  EXPECT_EQ(report.time, 0s);
}
TEST_F(PoolDrain, waits_for_jobs_that_stop_slowly) {
  WorkerPool<int> slow(scope, [](int, JobContext&) -> Task<Result<>> {
    const auto cleanup = []() -> Task<> { co_await sleep_for(5s); };
    co_await finally_do(awaited(sleep_for(1h)), cleanup(), 10s);
    co_return Result<>();
  });
  (void)slow.submit_nowait(1);
  sim.advance(1s);
  const auto report = run(slow.stop());
  EXPECT_EQ(report.time, 5s);
  EXPECT_EQ(report.cancelled, 1u);
}
TEST_F(PoolDrain, a_second_drain_forces_the_first) {
  open(sized(1, 5));
  (void)pool->submit_nowait({1, 1h});
  (void)pool->submit_nowait({2, 1h});
  std::optional<Pool::DrainReport> first, second;
  scope.spawn(drains(*pool, 2h, first));
  sim.advance(10s);
  EXPECT_FALSE(first);
  EXPECT_EQ(hall.running, 1);
  scope.spawn(drains(*pool, 2h, second));
  run_ready();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->cancelled, 1u);
  EXPECT_EQ(first->handed_back, 1u);
  EXPECT_EQ(first->time, 10s);
  EXPECT_EQ(first->jobs.size() + second->jobs.size(), 1u) << "handed back once";
  EXPECT_EQ(sim.now(), TimePoint(10s));
}
TEST_F(PoolDrain, a_cancelled_drain_call_leaves_the_drain_running) {
  open(sized(1, 5));
  (void)pool->submit_nowait({1, 10s});
  RootScope drainer(sim);
  std::optional<Pool::DrainReport> report;
  drainer.spawn(drains(*pool, 1s, report));
  run_ready();
  drainer.cancel();
  run_ready();
  EXPECT_TRUE(drainer.idle());
  sim.advance(5s);
  EXPECT_EQ(hall.running, 1) << "without its drainer there is no timeout";
  EXPECT_EQ(pool->submit_nowait({2}).error(), Errc::closed);
  sim.advance(5s);
  EXPECT_EQ(health().pool_size, 0u);
  EXPECT_EQ(drain().time, 10s);
}
TEST(PoolEnds, a_drain_call_may_be_cancelled_between_the_end_of_the_drain_and_its_resume) {
  int in_between = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Hall hall;
    Simulator sim(seed);
    RootScope scope(sim), drainer(sim);
    Pool pool(scope, [&hall](Work work, JobContext& context) { return carry_work(hall, work, context); });
    std::optional<Pool::DrainReport> report;
    drainer.spawn(drains(pool, 1s, report));
    ASSERT_TRUE(sim.run_until([&] { return scope.idle(); }));
    in_between += !report;
    drainer.cancel();
    sim.settle();
    EXPECT_TRUE(drainer.idle());
  }
  EXPECT_GT(in_between, 0);
}
TEST_F(PoolDrain, a_paused_pool_hands_back_its_queue) {
  open(sized(2, 5));
  EXPECT_TRUE(pool->resize(0));
  run_ready();
  for (int i = 0; i < 3; ++i) (void)pool->submit_nowait({i, 1s});
  const auto report = drain(1h);
  EXPECT_EQ(report.jobs.size(), 3u);
  EXPECT_EQ(report.time, 0s);
}
TEST_F(PoolDrain, hands_back_queued_jobs_when_the_last_worker_of_a_pause_stops) {
  open(sized(1, 5));
  for (int i = 0; i < 3; ++i) (void)pool->submit_nowait({i, 10s});
  run_ready();
  EXPECT_TRUE(pool->resize(0));
  const auto report = drain(1h);
  EXPECT_EQ(report.finished, 1u);
  EXPECT_EQ(report.jobs.size(), 2u);
  EXPECT_EQ(report.time, 10s);
}
TEST_F(PoolDrain, workers_retired_by_a_resize_do_not_return_for_a_drain) {
  open(sized(3, 10));
  for (int i = 0; i < 3; ++i) (void)pool->submit_nowait({i, 10s});
  for (int i = 3; i < 6; ++i) (void)pool->submit_nowait({i, 10s});
  run_ready();
  EXPECT_TRUE(pool->resize(1));
  const auto report = drain(1h);
  EXPECT_EQ(report.finished, 6u);
  EXPECT_EQ(report.time, 40s) << "one worker carried the last three";
}
TEST_F(PoolDrain, an_assigned_job_that_has_not_started_is_handed_back) {
  open(sized(1, 5));
  const auto at_once = [](Pool& which) -> Task<Pool::DrainReport> {
    (void)which.submit_nowait({1, 1s});  // wakes the worker, which resumes after us
    auto report = co_await which.drain(0s);
    co_return report;
  };
  const auto report = run(at_once(*pool));
  EXPECT_EQ(report.handed_back, 1u);
  EXPECT_EQ(report.jobs.at(0).job.value, 1);
  EXPECT_TRUE(hall.started.empty());
}

// ---- Without a drain -----------------------------------------------------------------------------------------------

TEST_F(PoolDrain, a_cancelled_scope_stops_everything_and_a_later_drain_hands_back_jobs_that_never_started) {
  open(sized(1, 2));
  std::map<std::uint64_t, Result<int>> done;
  pool->on_done([&](JobId id, Result<int> result) { done.emplace(id.number, std::move(result)); });
  (void)pool->submit_nowait({1, 1h});
  (void)pool->submit_nowait({2, 1h});
  submit({3, 1h});
  submit({4, 1h});  // waits for room
  scope.cancel();
  run_ready();
  EXPECT_TRUE(scope.idle());
  EXPECT_EQ(hall.running, 0);
  EXPECT_EQ(done.at(1).error(), Errc::cancelled);
  EXPECT_EQ(done.at(1).error().retry(), Retry::unknown) << "it had begun";
  EXPECT_EQ(answers.at(0).error(), Errc::closed);
  EXPECT_EQ(answers.at(1).error(), Errc::closed);
  EXPECT_EQ(pool->submit_nowait({5}).error(), Errc::closed);
  const auto report = drain();
  EXPECT_EQ(report.cancelled, 1u);
  EXPECT_EQ(report.handed_back, 2u);
  ASSERT_EQ(report.jobs.size(), 1u);
  EXPECT_EQ(report.jobs[0].job.value, 2);
}
TEST_F(PoolDrain, a_pool_in_a_cancelled_scope_is_closed) {
  scope.cancel();
  open();
  EXPECT_EQ(pool->submit_nowait({1}).error(), Errc::closed);
  EXPECT_EQ(health().pool_size, 0u);
}
TEST_F(PoolDrain, a_closed_scope_ends_the_growth) {
  open(sized(2, 2));
  scope.close();
  EXPECT_TRUE(pool->resize(5));
  run_ready();
  EXPECT_EQ(health().pool_size, 2u);
  EXPECT_EQ(health().target_size, 2u);
  submit({1, 1s});
  sim.advance(1s);
  EXPECT_EQ(*answers.at(0), 10);
}
Task<int> uses_a_pool(Hall& hall, Duration patience) {
  Pool inner([&hall](Work work, JobContext& context) { return carry_work(hall, work, context); }, {.workers = 2});
  int sum = 0;
  const auto body = [&](Scope& own) -> Task<> {
    inner.start(own);
    const auto first = co_await inner.submit({1, 10s});
    sum += *first;
    (void)co_await inner.drain();
  };
  ScopeOptions options;
  options.deadline = Deadline(TimePoint(patience));
  (void)co_await with_scope(options, body);
  co_return sum;
}
TEST_F(PoolDrain, a_pool_inside_a_coroutine_outlives_its_scope) { EXPECT_EQ(run(uses_a_pool(hall, 1h)), 10); }
TEST_F(PoolDrain, a_pool_inside_a_coroutine_is_stopped_with_its_scope) {
  EXPECT_EQ(run(uses_a_pool(hall, 3s)), 0);
  EXPECT_EQ(sim.now(), TimePoint(3s));
  EXPECT_EQ(hall.running, 0);
}
TEST(PoolEnds, jobs_may_be_queued_before_the_start) {
  Hall hall;
  Pool pool([&hall](Work work, JobContext& context) { return carry_work(hall, work, context); });
  EXPECT_TRUE(pool.submit_nowait({1, 1s}));
  Simulator sim(1);
  RootScope scope(sim);
  pool.start(scope);
  sim.advance(1s);
  EXPECT_EQ(hall.gone, 1);
  std::optional<Pool::DrainReport> report;
  scope.spawn(drains(pool, 1s, report));
  sim.settle();
  EXPECT_TRUE(report);
}
TEST_F(PoolDrain, a_pool_that_was_never_started_hands_everything_back) {
  pool.emplace([this](Work work, JobContext& context) { return carry_work(hall, work, context); });
  EXPECT_TRUE(pool->submit_nowait({1, 1s}));
  const auto report = drain(1h);
  EXPECT_EQ(report.jobs.size(), 1u);
  EXPECT_EQ(report.time, 0s);
}
TEST(PoolEnds, a_destroyed_executor_ends_workers_and_callers_and_leaves_the_pool_closed) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Hall hall;
    int done = 0;
    Pool pool([&hall](Work work, JobContext& context) { return carry_work(hall, work, context); },
              {.workers = 2, .queue_capacity = 2});
    pool.on_done([&done](JobId, Result<int>) { ++done; });
    auto other = std::make_unique<Simulator>(seed);
    auto sim = std::make_unique<Simulator>(seed);
    RootScope scope(*sim), far(*other);
    pool.start(scope);
    Log log;
    const auto call = [](Pool& to, Log& into) -> Task<> {
      const auto answer = co_await to.submit({1, 0s, Work::End::hangs});
      into.push_back(answer ? "?" : std::string(to_string(answer.error().code())));
    };
    for (int i = 0; i < 2; ++i) scope.spawn(call(pool, log));
    for (int i = 0; i < 4; ++i) far.spawn(call(pool, log));
    for (std::uint64_t i = 0; i < seed; ++i) (i % 2 == 0 ? sim : other)->step();
    (void)pool.submit_nowait({2, 0s, Work::End::hangs});
    sim.reset();
    EXPECT_EQ(hall.running, 0);
    EXPECT_EQ(pool.health().pool_size, 0u);
    EXPECT_EQ(pool.health().waiting_for_room, 0u);
    EXPECT_EQ(pool.submit_nowait({3}).error(), Errc::closed);
    other->run_ready();
    EXPECT_TRUE(far.idle()) << "callers on the other executor got an answer";
    EXPECT_EQ(log.size(), 4u);
    const PoolHealth seen = pool.health();
    EXPECT_EQ(seen.total_accepted, seen.total_cancelled + seen.total_handed_back);
    EXPECT_EQ(done, 0) << "nothing is called on a dying executor";
  }
}
TEST(PoolEnds, destroying_a_callers_executor_cancels_its_jobs) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Hall hall;
    Simulator sim(seed);
    RootScope scope(sim);
    Pool pool(scope, [&hall](Work work, JobContext& context) { return carry_work(hall, work, context); },
              {.workers = 2, .queue_capacity = 2});
    sim.run_ready();
    auto other = std::make_unique<Simulator>(seed);
    RootScope far(*other);
    const auto call = [](Pool& to) -> Task<> { (void)co_await to.submit({1, 0s, Work::End::hangs}); };
    for (int i = 0; i < 6; ++i) far.spawn(call(pool));
    for (std::uint64_t i = 0; i < seed; ++i) (i % 3 == 0 ? sim : *other).step();
    other.reset();
    sim.run_ready();
    EXPECT_EQ(hall.running, 0);
    const PoolHealth seen = pool.health();
    EXPECT_EQ(seen.queue_size + seen.waiting_for_room, 0u);
    EXPECT_EQ(seen.total_accepted, seen.total_cancelled);
    EXPECT_EQ(seen.pool_size, 2u) << "the workers live";
    std::optional<Pool::DrainReport> report;
    scope.spawn(drains(pool, 1s, report));
    sim.settle();
  }
}

}  // namespace
}  // namespace stint
