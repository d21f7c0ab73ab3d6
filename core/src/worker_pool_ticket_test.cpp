// Tickets, and what a job inherits from its caller: deadline, budget, scope.
#include "stint/budget.hpp"
#include "worker_pool_test_support.hpp"

namespace stint {
namespace {

using PoolTickets = PoolTest;
using PoolDeadlines = PoolTest;

// ---- Tickets -------------------------------------------------------------------------------------------------------

TEST_F(PoolTickets, a_ticket_keeps_the_result_until_it_is_taken) {
  open(sized(1, 1));
  const auto call = [](Pool& to) -> Task<int> {
    auto first = co_await to.enqueue({1, 1s});
    auto second = co_await to.enqueue({2, 1s});
    auto third = co_await to.enqueue({3, 1s});  // waits for room
    EXPECT_LT(first->id(), second->id());
    co_await sleep_for(10s);
    EXPECT_TRUE(first->ended() && second->ended() && third->ended());
    const auto c = co_await third->result();
    const auto a = co_await first->result();
    const auto b = co_await second->result();
    co_return *a + *b + *c;
  };
  EXPECT_EQ(run(call(*pool)), 60);
}
TEST_F(PoolTickets, a_ticket_waits_for_a_pending_result) {
  open();
  const auto call = [](Pool& to) -> Task<int> {
    auto ticket = co_await to.enqueue({1, 5s});
    const auto result = co_await ticket->result();
    co_return *result;
  };
  EXPECT_EQ(run(call(*pool)), 10);
  EXPECT_EQ(sim.now(), TimePoint(5s));
}
TEST_F(PoolTickets, a_destroyed_ticket_cancels_its_job) {
  open(sized(1, 5));
  std::vector<Ticket<int>> tickets;
  const auto call = [](Pool& to, std::vector<Ticket<int>>& into) -> Task<bool> {
    for (int i = 1; i <= 3; ++i) {
      auto ticket = co_await to.enqueue({i, 1h});
      into.push_back(std::move(*ticket));
    }
    co_return true;
  };
  run(call(*pool, tickets));
  run_ready();
  EXPECT_EQ(hall.running, 1);
  const JobId third = tickets[2].detach();
  tickets.clear();
  EXPECT_EQ(health().queue_size, 1u) << "the detached one stays";
  run_ready();
  EXPECT_EQ(hall.started, (std::vector{1, 3}));
  EXPECT_EQ(hall.running, 1);
  EXPECT_EQ(health().total_cancelled, 2u);
  EXPECT_TRUE(pool->cancel(third));
  run_ready();
  EXPECT_EQ(health().results_dropped, 2u) << "of the one that ran, and of the detached one";
}
TEST_F(PoolTickets, an_enqueue_cancelled_after_acceptance_leaves_no_job_behind) {
  open(sized(1, 1));
  submit({1, 10s});
  submit({2, 10s});
  RootScope caller(sim);
  bool resumed = false;
  const auto call = [](Pool& to, bool& went_on) -> Task<> {
    auto ticket = co_await to.enqueue({3, 10s});
    went_on = true;
  };
  caller.spawn(call(*pool, resumed));
  run_ready();
  ASSERT_TRUE(sim.run_until([this] { return health().total_accepted == 3; }));  // accepted, but not resumed
  EXPECT_FALSE(resumed);
  caller.cancel();
  run_ready();
  EXPECT_TRUE(caller.idle());
  sim.advance(1min);
  EXPECT_EQ(hall.started, (std::vector{1, 2}));
  EXPECT_EQ(health().total_cancelled, 1u);
}

// ---- Deadlines, budgets, scopes ------------------------------------------------------------------------------------

JobOptions ends_by(TimePoint when) {
  JobOptions options;
  options.deadline = Deadline(when);
  return options;
}
TEST_F(PoolDeadlines, a_job_is_stopped_at_its_deadline) {
  open();
  submit({1, 1h}, ends_by(TimePoint(3s)));
  sim.advance(1min);
  EXPECT_EQ(answers.at(0).error(), Errc::timed_out);
  EXPECT_EQ(hall.running, 0);
  EXPECT_EQ(health().total_failed, 1u) << "a deadline is a failure, not a cancel";
  EXPECT_EQ(health().total_cancelled, 0u);
}
TEST_F(PoolDeadlines, a_queued_job_is_not_started_after_its_deadline_and_its_caller_fails_at_once) {
  open(sized(1, 1));
  submit({1, 10s});
  submit({2, 1s}, ends_by(TimePoint(3s)));
  submit({3, 1s}, ends_by(TimePoint(2s)));  // waits for room
  sim.advance(3s);
  EXPECT_EQ(answers.at(1).error(), Errc::timed_out);
  EXPECT_EQ(answers.at(1).error().retry(), Retry::safe) << "it never began";
  EXPECT_EQ(answers.at(2).error(), Errc::timed_out);
  EXPECT_EQ(health().queue_size, 0u);
  EXPECT_EQ(health().total_failed, 1u) << "the one that waited for room was never accepted";
  sim.advance(1min);
  EXPECT_EQ(hall.started, std::vector{1});
}
TEST_F(PoolDeadlines, a_detached_job_is_not_started_after_its_deadline) {
  open(sized(1, 1));
  std::map<std::uint64_t, Result<int>> done;
  pool->on_done([&](JobId id, Result<int> result) { done.emplace(id.number, std::move(result)); });
  (void)pool->submit_nowait({1, 10s});
  (void)pool->submit_nowait({2, 1s}, ends_by(TimePoint(3s)));
  sim.advance(1min);
  EXPECT_EQ(hall.started, std::vector{1});
  EXPECT_EQ(done.at(2).error(), Errc::timed_out);
}
TEST_F(PoolDeadlines, a_job_uses_its_callers_deadline_and_budget_and_not_the_previous_jobs) {
  struct Seen {
    Deadline deadline;
    Budget* budget;
  };
  std::vector<Seen> seen;
  WorkerPool<int> watched(scope, [&seen](int, Scope& own) -> Task<Result<>> {
    seen.push_back({own.deadline(), own.budget()});
    co_return Result<>();
  });
  Budget budget, other;
  const auto call = [](WorkerPool<int>& to, Budget& mine, Budget& others) -> Task<bool> {
    ScopeOptions bounds;
    bounds.deadline = Deadline(TimePoint(9s));
    bounds.budget = &mine;
    const auto open = [&](Scope&) -> Task<> {
      (void)co_await to.submit(1);
      JobOptions options;
      options.deadline = Deadline(TimePoint(5s));
      options.budget = &others;
      (void)co_await to.submit(2, options);
    };
    (void)co_await with_scope(bounds, open);
    (void)co_await to.submit(3);
    co_return true;
  };
  run(call(watched, budget, other));
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].deadline, Deadline(TimePoint(9s)));
  EXPECT_EQ(seen[0].budget, &budget);
  EXPECT_EQ(seen[1].deadline, Deadline(TimePoint(5s)));
  EXPECT_EQ(seen[1].budget, &other);
  EXPECT_EQ(seen[2].deadline, Deadline::never());
  EXPECT_EQ(seen[2].budget, nullptr);
  run(watched.drain());
}
TEST_F(PoolDeadlines, attempts_and_waits_inside_a_job_end_at_its_deadline) {
  int attempts = 0;
  WorkerPool<int, int> stubborn(scope, [&attempts](int wanted, Scope& own) -> Task<Result<int>> {
    while (true) {
      const auto tried = co_await with_deadline(Deadline::after(own.executor().now(), 1s), awaited(sleep_for(1h)));
      if (++attempts == wanted) co_return attempts;
      if (tried) co_return attempts;
      co_await sleep_for(500ms);  // back-off
    }
  });
  const auto call = [](WorkerPool<int, int>& to, int wanted, TimePoint deadline) -> Task<Result<int>> {
    JobOptions options;
    options.deadline = Deadline(deadline);
    auto result = co_await to.submit(wanted, options);
    co_return result;
  };
  EXPECT_EQ(*run(call(stubborn, 3, TimePoint(1min))), 3);
  EXPECT_EQ(sim.now(), TimePoint(4s));
  attempts = 0;
  EXPECT_EQ(run(call(stubborn, 100, TimePoint(10s))).error(), Errc::timed_out);
  EXPECT_EQ(sim.now(), TimePoint(10s));
  EXPECT_EQ(attempts, 4);
  run(stubborn.drain());
}

}  // namespace
}  // namespace stint
