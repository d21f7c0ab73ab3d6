// The life of a job: accepted, refused, run, cancelled, detached.
#include "worker_pool_test_support.hpp"

namespace stint {
namespace {

using WorkerPoolTest = PoolTest;

// ---- Submit --------------------------------------------------------------------------------------------------------

TEST_F(WorkerPoolTest, submit_returns_the_result) {
  open();
  submit({4, 5s});
  EXPECT_TRUE(answers.empty());
  sim.advance(5s);
  EXPECT_EQ(*answers.at(0), 40);
}
TEST_F(WorkerPoolTest, defaults_match_the_documentation) {
  open();
  EXPECT_EQ(health().pool_size, 10u);
  EXPECT_EQ(health().queue_capacity, 100u);
  const PoolOptions options;
  EXPECT_EQ(options.stale_after, 120s);
  EXPECT_EQ(options.idle_beat, 1s);
  EXPECT_EQ(options.drain_timeout, 60s);
}
TEST_F(WorkerPoolTest, a_failure_is_returned_to_the_jobs_caller) {
  open(sized(1, 1));
  submit({1, 1s, Work::End::fails});
  submit({2, 1s});
  sim.advance(2s);
  EXPECT_EQ(answers.at(0).error(), Errc::failed);
  EXPECT_EQ(*answers.at(1), 20);
  EXPECT_EQ(health().total_failed, 1u);
  EXPECT_EQ(health().total_completed, 1u);
}
TEST_F(WorkerPoolTest, an_exception_fails_only_its_job) {
  open(sized(1, 1));
  submit({1, 1s, Work::End::throws});
  submit({2, 1s});
  sim.advance(2s);
  EXPECT_EQ(answers.at(0).error(), Errc::failed);
  EXPECT_EQ(answers.at(0).error().what(), "the job threw: boom");
  EXPECT_EQ(*answers.at(1), 20);
  EXPECT_EQ(health().workers.at(0).id, WorkerId{0}) << "the same worker lives on";
  EXPECT_EQ(health().workers.at(0).failed, 1u);
}
TEST_F(WorkerPoolTest, submit_waits_for_room) {
  open(sized(1, 1));
  submit({1, 10s});
  submit({2, 10s});
  submit({3, 10s});
  EXPECT_EQ(health().queue_size, 1u);
  EXPECT_EQ(health().waiting_for_room, 1u);
  sim.advance(10s);
  EXPECT_EQ(health().waiting_for_room, 0u);
  sim.advance(20s);
  EXPECT_EQ(*answers.at(2), 30);
  EXPECT_EQ(hall.started, (std::vector{1, 2, 3}));
}
TEST_F(WorkerPoolTest, a_pool_without_a_queue_accepts_a_job_when_a_worker_is_idle) {
  open(sized(1, 0));
  EXPECT_TRUE(pool->submit_nowait({1, 10s}));
  EXPECT_EQ(pool->submit_nowait({2, 10s}).error(), Errc::full);
  submit({3, 10s});
  EXPECT_EQ(health().waiting_for_room, 1u);
  sim.advance(20s);
  EXPECT_EQ(*answers.at(0), 30);
}
TEST_F(WorkerPoolTest, jobs_start_in_the_order_in_which_they_were_accepted) {
  open(sized(1, 3));
  std::vector<int> expected;
  for (int i = 0; i < 10; ++i) {
    submit({i, 1s});
    expected.push_back(i);
  }
  sim.advance(10s);
  EXPECT_EQ(hall.started, expected);
}
TEST_F(WorkerPoolTest, ten_thousand_jobs_at_once) {
  open(sized(10, 100));
  int done = 0, sum = 0;
  const auto call = [](Pool& to, int value, int& count, int& into) -> Task<> {
    const auto answer = co_await to.submit({value, 1ms});
    ++count;
    into += *answer;
  };
  for (int i = 0; i < 10'000; ++i) scope.spawn(call(*pool, i % 7, done, sum));
  ASSERT_TRUE(sim.run_until([&] { return done == 10'000; }));
  EXPECT_EQ(hall.most_running, 10);
  EXPECT_EQ(health().total_completed, 10'000u);
  EXPECT_EQ(sim.now(), TimePoint(1s)) << "10,000 jobs of 1 ms on 10 workers";
}
TEST_F(WorkerPoolTest, a_handler_may_take_the_scope_and_jobs_may_be_move_only) {
  using Thing = std::unique_ptr<int>;
  WorkerPool<Thing> things(scope, [](Thing thing, Scope& own) -> Task<Result<>> {
    const auto child = [](int& value) -> Task<> {
      co_await sleep_for(3s);
      value = 7;
    };
    own.spawn(child(*thing));
    co_return Result<>();  // the scope is joined before the job ends
  });
  const auto call = [](WorkerPool<Thing>& to) -> Task<bool> {
    const auto done = co_await to.submit(std::make_unique<int>(1));
    co_return done.has_value();
  };
  EXPECT_TRUE(run(call(things)));
  EXPECT_EQ(sim.now(), TimePoint(3s));
  run(things.drain());
}

// ---- Submit without waiting ----------------------------------------------------------------------------------------

TEST_F(WorkerPoolTest, submit_nowait_fails_with_full_instead_of_blocking) {
  PoolOptions options = sized(1, 2);
  options.retry_after = 7s;
  open(options);
  EXPECT_EQ(pool->submit_nowait({1, 1s})->number, 1u);
  EXPECT_EQ(pool->submit_nowait({2, 1s})->number, 2u);
  EXPECT_EQ(pool->submit_nowait({3, 1s})->number, 3u);
  const auto refused = pool->submit_nowait({4, 1s});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::full);
  EXPECT_EQ(refused.error().retry(), Retry::safe);
  EXPECT_EQ(refused.error().retry_after(), 7s);
  sim.advance(1s);
  EXPECT_TRUE(pool->submit_nowait({4, 1s})) << "there is room again";
  sim.advance(3s);
  EXPECT_EQ(hall.started, (std::vector{1, 2, 3, 4}));
}
TEST_F(WorkerPoolTest, submit_nowait_does_not_barge_past_waiting_submitters) {
  open(sized(1, 1));
  submit({1, 10s});
  submit({2, 10s});
  Scope& waiting = submit({3, 10s});
  EXPECT_EQ(pool->submit_nowait({4}).error(), Errc::full);
  waiting.cancel();
  run_ready();
  EXPECT_EQ(pool->submit_nowait({4}).error(), Errc::full) << "the queue is full all the same";
}
TEST_F(WorkerPoolTest, every_idle_worker_takes_a_job_before_the_queue_fills) {
  open(sized(10, 1));
  for (int i = 0; i < 11; ++i) EXPECT_TRUE(pool->submit_nowait({i, 1s})) << i;  // nothing ran in between
  EXPECT_EQ(pool->submit_nowait({11}).error(), Errc::full);
  EXPECT_EQ(health().utilization, 1.0);
}
TEST_F(WorkerPoolTest, results_without_a_receiver_do_not_leak) {
  open(sized(2, 10));
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(pool->submit_nowait({i, 1ms, i % 2 == 0 ? Work::End::succeeds : Work::End::fails}));
    sim.advance(1ms);
  }
  sim.advance(1s);
  EXPECT_EQ(health().results_dropped, 1000u);
  EXPECT_EQ(health().total_completed, 500u);
  EXPECT_EQ(health().total_failed, 500u);
  // The slots of ended jobs were reused: ids grow, slots do not.
  EXPECT_LT(pool->submit_nowait({1})->slot, 12u);
}
TEST_F(WorkerPoolTest, on_done_receives_every_result_without_a_waiter) {
  open(sized(1, 10));
  std::map<std::uint64_t, Result<int>> done;
  pool->on_done([&](JobId id, Result<int> result) {
    EXPECT_TRUE(done.emplace(id.number, std::move(result)).second) << "twice";
    if (id.number == 1) throw std::runtime_error("the callback throws");
  });
  (void)pool->submit_nowait({1, 1s});
  (void)pool->submit_nowait({2, 1s, Work::End::fails});
  const JobId third = *pool->submit_nowait({3, 1s});
  (void)pool->submit_nowait({4, 1s});
  submit({5, 1s});
  EXPECT_TRUE(pool->cancel(third));
  EXPECT_FALSE(done.contains(3)) << "never called from within a call to the pool";
  sim.advance(10s);
  EXPECT_EQ(*done.at(1), 10);
  EXPECT_EQ(done.at(2).error(), Errc::failed);
  EXPECT_EQ(done.at(3).error(), Errc::cancelled);
  EXPECT_EQ(*done.at(4), 40);
  EXPECT_EQ(done.size(), 4u) << "a waiting caller gets its own result";
  EXPECT_EQ(health().callback_errors, 1u);
  EXPECT_EQ(health().results_dropped, 0u);
}

// ---- Callers that go away ------------------------------------------------------------------------------------------

TEST_F(WorkerPoolTest, a_caller_that_goes_away_cancels_its_job_and_the_worker_continues) {
  open(sized(1, 1));
  Scope& caller = submit({1, 1h});
  EXPECT_EQ(hall.running, 1);
  caller.cancel();
  run_ready();
  EXPECT_EQ(hall.running, 0) << "the job is gone";
  EXPECT_TRUE(caller.idle());
  EXPECT_EQ(health().total_cancelled, 1u);
  EXPECT_EQ(health().workers.at(0).state, WorkerState::idle);
  submit({2, 1s});
  sim.advance(1s);
  EXPECT_EQ(*answers.at(1), 20);
  EXPECT_EQ(health().workers.at(0).id, WorkerId{0});
}
TEST_F(WorkerPoolTest, a_cancelled_caller_ends_only_after_its_job) {
  Log log;
  WorkerPool<int> slow(scope, [&log](int, JobContext&) -> Task<Result<>> {
    const Trace trace{log, "job gone"};
    const auto cleanup = []() -> Task<> { co_await sleep_for(5s); };
    co_await finally_do(awaited(sleep_for(1h)), cleanup(), 10s);
    co_return Result<>();
  });
  RootScope caller(sim);
  const auto call = [](WorkerPool<int>& to, Log& into) -> Task<> {
    const Trace trace{into, "caller gone"};
    (void)co_await to.submit(1);
  };
  caller.spawn(call(slow, log));
  sim.advance(1s);
  caller.cancel();
  sim.advance(4s);
  EXPECT_EQ(log, Log{}) << "the job still cleans up";
  EXPECT_EQ(slow.health().utilization, 0.1);
  sim.advance(1s);
  EXPECT_EQ(log, (Log{"job gone", "caller gone"}));
  run(slow.drain());
}
TEST_F(WorkerPoolTest, a_queued_job_whose_caller_goes_away_never_runs) {
  open(sized(1, 2));
  submit({1, 10s});
  Scope& second = submit({2, 10s});
  submit({3, 10s});
  submit({4, 10s});
  EXPECT_EQ(health().waiting_for_room, 1u);
  second.cancel();
  run_ready();
  EXPECT_TRUE(second.idle());
  EXPECT_EQ(health().queue_size, 2u) << "its place went to the next";
  EXPECT_EQ(health().waiting_for_room, 0u);
  sim.advance(30s);
  EXPECT_EQ(hall.started, (std::vector{1, 3, 4}));
  EXPECT_EQ(health().total_cancelled, 1u);
}
TEST_F(WorkerPoolTest, a_caller_that_goes_away_while_it_waits_for_room_costs_nothing) {
  open(sized(1, 1));
  submit({1, 10s});
  submit({2, 10s});
  submit({3, 10s}).cancel();
  run_ready();
  EXPECT_EQ(health().waiting_for_room, 0u);
  EXPECT_EQ(health().total_accepted, 2u);
  sim.advance(1min);
  EXPECT_EQ(hall.started, (std::vector{1, 2}));
  EXPECT_EQ(health().total_cancelled, 0u);
}
TEST_F(WorkerPoolTest, an_assigned_job_that_has_not_started_is_withdrawn) {
  open(sized(1, 1));
  std::map<std::uint64_t, Result<int>> done;
  pool->on_done([&](JobId id, Result<int> result) { done.emplace(id.number, std::move(result)); });
  const JobId id = *pool->submit_nowait({1, 10s});
  EXPECT_EQ(health().utilization, 1.0);
  EXPECT_TRUE(pool->cancel(id));  // the worker has been woken, but has not resumed
  EXPECT_EQ(health().utilization, 0.0);
  run_ready();
  EXPECT_EQ(done.at(1).error(), Errc::cancelled);
  EXPECT_EQ(health().workers.at(0).state, WorkerState::idle);
  submit({2, 1s});
  sim.advance(1s);
  EXPECT_EQ(hall.started, std::vector{2});
}
TEST_F(WorkerPoolTest, cancel_by_id_reaches_queued_and_running_jobs_and_nothing_else) {
  open(sized(1, 5));
  const JobId running = *pool->submit_nowait({1, 1h});
  run_ready();
  const JobId queued = *pool->submit_nowait({2, 1h});
  EXPECT_TRUE(pool->cancel(queued));
  EXPECT_EQ(health().queue_size, 0u) << "at once";
  EXPECT_TRUE(pool->cancel(running));
  run_ready();
  EXPECT_EQ(hall.running, 0);
  EXPECT_FALSE(pool->cancel(running));
  EXPECT_FALSE(pool->cancel(queued));
  EXPECT_FALSE(pool->cancel(JobId{}));
  const JobId later = *pool->submit_nowait({3, 1h});
  EXPECT_EQ(later.slot, queued.slot == later.slot ? queued.slot : running.slot) << "a slot is used again";
  EXPECT_FALSE(pool->cancel(running)) << "an old id must not reach the new job in its slot";
  EXPECT_FALSE(pool->cancel(queued));
  run_ready();
  EXPECT_EQ(hall.running, 1);
  EXPECT_EQ(health().total_cancelled, 2u);
}
TEST_F(WorkerPoolTest, a_waiting_caller_gets_cancelled_if_its_job_is_cancelled_by_id) {
  open(sized(1, 1));
  submit({1, 1h});
  submit({2, 1h});
  const JobId running = *health().workers.at(0).job;
  EXPECT_TRUE(pool->cancel({running.number + 1, running.slot + 1}));
  EXPECT_TRUE(pool->cancel(running));
  run_ready();
  EXPECT_EQ(answers.at(0).error(), Errc::cancelled);
  EXPECT_EQ(answers.at(1).error(), Errc::cancelled);
  EXPECT_EQ(answers.at(1).error().retry(), Retry::safe) << "it never began";
}
TEST_F(WorkerPoolTest, a_submit_that_loses_a_race_cancels_its_job) {
  open();
  const auto racing = [](Pool& to) -> Task<std::size_t> {
    const auto winner = co_await select(to.submit({1, 1h}), sleep_for(2s));
    co_return winner.index();
  };
  EXPECT_EQ(run(racing(*pool)), 1u);
  EXPECT_EQ(hall.running, 0);
  EXPECT_EQ(sim.now(), TimePoint(2s));
}

}  // namespace
}  // namespace stint
