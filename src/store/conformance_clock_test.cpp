// A jump of the wall clock neither shortens nor lengthens a wait; budgets stand still while a limit is paused. The
// wall clock is the store's: the machine's, or the database's.
#include "store/conformance.hpp"

namespace stint::store {

using namespace std::chrono_literals;
using domain::RunState;
using domain::Settle;

void ClockTest::prepare() {
  define("a", [](AgentEntry& agent) { agent.limits = {{"account:x", 1}, {"gpu", 1}}; });
  node_ = enrol();
  tick();  // a process must have read the clock once to detect a jump
}

void ClockTest::advance(Duration by) {
  world().advance(by);
  EXPECT_TRUE(get(store().beat(node_)).alive);
}

void ClockTest::jump(Duration by) {
  world().jump(by);
  EXPECT_TRUE(get(store().beat(node_)).alive);
}

std::string ClockTest::begun() {
  const std::string id = submit("a", [](NewRun& run) { run.budget = 10s; });
  const Claim claim = claim_one(node_, "a");
  advance(4s);
  EXPECT_EQ(settle(node_, claim, Settle::hand_back), RunState::queued);
  return id;
}

namespace {

TEST_P(ClockTest, a_jump_does_not_move_the_end_of_a_delay) {
  with_jumps([&](Duration by) {
    const std::string id = submit("a", [](NewRun& run) { run.delay = 10s; });
    jump(by);
    EXPECT_EQ(tick().woken, 0U);
    EXPECT_EQ(look(id).not_before, world().now() + 10s) << "as displayed";
    advance(9999ms);
    EXPECT_EQ(tick().woken, 0U);
    advance(1ms);
    EXPECT_EQ(tick().woken, 1U);
    EXPECT_TRUE(is_claimable(id));
  });
}

TEST_P(ClockTest, a_run_submitted_right_after_a_jump_waits_for_its_whole_delay) {
  with_jumps([&](Duration by) {
    jump(by);
    submit("a", [](NewRun& run) { run.delay = 10s; });
    advance(9999ms);
    EXPECT_EQ(tick().woken, 0U);
    advance(1ms);
    EXPECT_EQ(tick().woken, 1U);
  });
}

TEST_P(ClockTest, a_jump_does_not_move_the_end_of_a_backoff) {
  with_jumps([&](Duration by) {
    const std::string id = submit("a", [](NewRun& run) { run.budget = 1h; });
    const Claim claim = claim_one(node_, "a");
    jump(by);  // and the store is not used before the attempt ends
    EXPECT_EQ(settle(node_, claim, Settle::retry, [](Settlement& end) { end.retry_after = 10s; }), RunState::queued);
    jump(-by);
    EXPECT_EQ(tick().woken, 0U);
    jump(by);
    advance(9999ms);
    EXPECT_EQ(tick().woken, 0U);
    advance(1ms);
    EXPECT_EQ(tick().woken, 1U);
    EXPECT_TRUE(is_claimable(id));
  });
}

TEST_P(ClockTest, a_jump_does_not_move_the_end_of_a_park_and_of_its_pause) {
  with_jumps([&](Duration by) {
    const std::string id = submit("a", [](NewRun& run) { run.budget = 1min; }), next = submit("a");
    const Claim claim = claim_one(node_, "a");
    EXPECT_EQ(settle(node_, claim, Settle::park,
                     [](Settlement& end) {
                       end.park_on = "account:x";
                       end.park_for = 10s;
                     }),
              RunState::parked);
    jump(by);
    EXPECT_EQ(tick().woken, 0U);
    EXPECT_FALSE(is_claimable(next));
    advance(9999ms);
    EXPECT_EQ(tick().woken, 0U);
    EXPECT_FALSE(is_claimable(next));
    advance(1ms);
    EXPECT_EQ(tick().woken, 1U);
    EXPECT_TRUE(is_claimable(id));
  });
}

TEST_P(ClockTest, a_jump_does_not_move_the_end_of_a_pause) {
  with_jumps([&](Duration by) {
    const std::string id = submit("a");
    get(store().pause("gpu", 10s));
    jump(by);
    EXPECT_FALSE(is_claimable(id));
    EXPECT_EQ(get(store().ready(10)).at(0).startable, 0U);
    tick();
    const std::vector<LimitState> limits = get(store().limits());
    const auto gpu = std::ranges::find(limits, "gpu", &LimitState::name);
    ASSERT_NE(gpu, limits.end());
    EXPECT_EQ(gpu->paused_until, world().now() + 10s);
    EXPECT_EQ(gpu->paused_for, Duration(10s));
    advance(9999ms);
    EXPECT_FALSE(is_claimable(id));
    advance(1ms);
    EXPECT_TRUE(is_claimable(id));
  });
}

TEST_P(ClockTest, a_jump_takes_nothing_from_a_budget_and_adds_nothing) {
  with_jumps([&](Duration by) {
    const std::string id = submit("a", [](NewRun& run) { run.budget = 1min; });
    const Claim first = claim_one(node_, "a");
    advance(10s);
    jump(by);
    EXPECT_EQ(get(store().owned(node_)).at(0).left, Duration(50s));
    EXPECT_EQ(tick().expired, 0U);
    EXPECT_EQ(settle(node_, first, Settle::hand_back), RunState::queued);
    jump(by);
    const Claim second = claim_one(node_, "a");
    EXPECT_EQ(second.left, Duration(50s));
    EXPECT_EQ(second.expires_at, world().now() + 50s);
    advance(49'999ms);
    EXPECT_EQ(tick().expired, 0U);
    advance(1ms);
    EXPECT_EQ(tick().expired, 1U);
    EXPECT_EQ(look(id).stop, domain::Stop::expired);
  });
}

TEST_P(ClockTest, a_child_draws_on_the_time_of_its_parent_whatever_the_wall_clock_does) {
  with_jumps([&](Duration by) {
    submit("a", [](NewRun& run) { run.budget = 1min; });
    const Claim parent = claim_one(node_, "a");
    advance(10s);
    const auto child = [&](std::optional<Duration> budget, Duration delay) {
      return submit("a", [&](NewRun& run) {
        run.parent = parent.id;
        run.budget = budget;
        run.delay = delay;
      });
    };
    const std::string first = child(10s, 0s);
    const std::string second = child(10min, 0s);
    const std::string delayed = child(std::nullopt, 1h);
    jump(by);
    EXPECT_EQ(tick().expired, 0U);
    EXPECT_EQ(look(second).expires_at, world().now() + 50s);
    EXPECT_EQ(look(second).deadline, std::nullopt);
    advance(20s);
    const Claim with_less = claim_one(node_, "a");
    EXPECT_EQ(with_less.id, first);
    EXPECT_EQ(with_less.left, Duration(10s)) << "its own budget begins with its first start";
    const Claim with_more = claim_one(node_, "a");
    EXPECT_EQ(with_more.id, second);
    EXPECT_EQ(with_more.left, Duration(30s)) << "bounded by its parent's budget";
    advance(1s);
    EXPECT_EQ(settle(node_, with_less, Settle::hand_back), RunState::queued);
    EXPECT_EQ(claim_one(node_, "a").left, Duration(9s)) << "the budget does not restart";
    advance(28'999ms);
    EXPECT_EQ(tick().expired, 1U) << "the first child";
    advance(1ms);
    EXPECT_EQ(tick().expired, 3U) << "the parent, and its unfinished children";
    EXPECT_EQ(state(delayed), RunState::expired);
  });
}

TEST_P(ClockTest, a_deadline_alone_follows_the_wall_clock) {
  prepare();
  const std::string id = submit("a", [&](NewRun& run) { run.deadline = world().now() + 1h; });
  const std::string within = submit("a", [&](NewRun& run) { run.deadline_in = 2h; });
  EXPECT_EQ(look(within).deadline, world().now() + 2h);
  jump(-24h);
  advance(10s);
  EXPECT_EQ(tick().expired, 0U);
  jump(24h + 59min + 49s + 999ms);
  EXPECT_EQ(tick().expired, 0U);
  advance(1ms);
  EXPECT_EQ(tick().expired, 1U);
  EXPECT_EQ(state(id), RunState::expired);
  jump(24h);
  EXPECT_FALSE(is_claimable(within)) << "not even before a tick expires it";
  EXPECT_EQ(tick().expired, 1U);
}

TEST_P(ClockTest, a_park_that_outlasts_the_deadline_expires_whatever_the_clock_did_before) {
  with_jumps([&](Duration by) {
    submit("a", [&](NewRun& run) { run.deadline_in = 48h; });
    jump(by);
    tick();
    const Claim claim = claim_one(node_, "a");
    const bool fits = by < Duration::zero();
    EXPECT_EQ(settle(node_, claim, Settle::park, [](Settlement& end) { end.park_for = 36h; }),
              fits ? RunState::parked : RunState::expired);
  });
}

TEST_P(ClockTest, an_ended_run_is_kept_for_its_retention) {
  with_jumps([&](Duration by) {
    const std::string id = submit("a");
    EXPECT_EQ(settle(node_, claim_one(node_, "a"), Settle::succeeded), RunState::succeeded);
    jump(by);
    tick();
    EXPECT_EQ(look(id).finished_at, world().now());
    advance(10s);
    EXPECT_EQ(get(store().prune(10s, 100)), 0U);
    advance(1ms);
    EXPECT_EQ(get(store().prune(10s, 100)), 1U);
  });
}

TEST_P(ClockTest, runs_keep_their_order_across_a_jump) {
  with_jumps([&](Duration by) {
    const std::string first = submit("a");
    jump(by);
    advance(1s);
    const std::string second = submit("a");
    EXPECT_EQ(claimed_ids(node_, "a", 2), (std::vector<std::string>{first, second}));
  });
}

TEST_P(ClockTest, the_next_tick_is_due_when_something_is) {
  with_jumps([&](Duration by) {
    EXPECT_EQ(tick().next, std::nullopt);
    submit("a", [](NewRun& run) { run.delay = 10s; });
    jump(by);
    EXPECT_EQ(tick().next, Duration(10s));
    const std::string id = submit("a", [](NewRun& run) { run.budget = 7s; });
    const Claim claim = claim_one(node_, "a");
    EXPECT_EQ(tick().next, Duration(7s));
    settle(node_, claim, Settle::hand_back);
    EXPECT_EQ(tick().next, Duration(7s));
    get(store().pause("gpu", 2s));
    EXPECT_EQ(tick().next, Duration(9s));
    get(store().pause("gpu", std::nullopt));
    EXPECT_EQ(tick().next, Duration(10s));
    submit("a", [](NewRun& run) { run.deadline_in = 3s; });
    EXPECT_EQ(tick().next, Duration(3s));
  });
}

// ---- sleep ---------------------------------------------------------------------------------------------------------

TEST_P(ClockTest, sleep_uses_no_budget_and_delays_continue) {
  prepare();
  if (!world().is_local()) GTEST_SKIP() << "the database does not sleep with this machine";
  submit("a", [](NewRun& run) { run.budget = 1min; });
  const Claim claim = claim_one(node_, "a");
  submit("a", [](NewRun& run) { run.delay = 1h; });
  world().clocks().suspend(8h);
  get(store().beat(node_));
  const Ticked ticked = tick();
  EXPECT_EQ(ticked.expired, 0U);
  EXPECT_EQ(ticked.woken, 1U);
  EXPECT_EQ(get(store().owned(node_)).at(0).left, Duration(1min));
}

TEST_P(ClockTest, a_pause_that_ends_during_sleep_is_not_charged_to_a_budget) {
  prepare();
  if (!world().is_local()) GTEST_SKIP() << "the database does not sleep with this machine";
  const std::string id = begun();
  get(store().pause("gpu", 1h));
  advance(30min);
  world().clocks().suspend(8h);
  get(store().beat(node_));
  EXPECT_EQ(tick().expired, 0U);
  EXPECT_EQ(claim_one(node_, "a").left, Duration(6s));
}

// ---- pauses --------------------------------------------------------------------------------------------------------

TEST_P(ClockTest, a_budget_stands_still_while_the_account_is_paused) {
  prepare();
  const std::string id = begun();
  get(store().pause("account:x", 1h));
  EXPECT_EQ(look(id).expires_at, world().now() + 1h + 6s);
  advance(59min);
  EXPECT_EQ(tick().expired, 0U);
  advance(1min + 5s);
  EXPECT_EQ(tick().expired, 0U);
  EXPECT_EQ(look(id).expires_at, world().now() + 1s);
  EXPECT_EQ(claim_one(node_, "a").left, Duration(1s)) << "from the end of the pause on it draws again";
}

TEST_P(ClockTest, a_budget_is_extended_by_the_time_it_stood_still) {
  prepare();
  const std::string id = begun();
  advance(1s);
  get(store().pause("account:x", std::nullopt));
  EXPECT_EQ(look(id).expires_at, std::nullopt) << "unknown";
  advance(1h);
  EXPECT_EQ(tick().expired, 0U);
  get(store().resume("account:x"));
  advance(4999ms);
  EXPECT_EQ(tick().expired, 0U);
  advance(1ms);
  EXPECT_EQ(tick().expired, 1U);
  EXPECT_EQ(state(id), RunState::expired);
}

TEST_P(ClockTest, pauses_at_the_same_time_count_once) {
  prepare();
  const std::string id = begun();
  get(store().pause("account:x", 10s));
  advance(5s);
  get(store().pause("gpu", 10s));
  advance(2s);
  get(store().pause("gpu", 1s));  // does not shorten the pause
  advance(1s);
  get(store().resume("account:x"));
  advance(7s);  // the other pause is over
  EXPECT_EQ(claim_one(node_, "a").left, Duration(6s));
  (void)id;
}

TEST_P(ClockTest, a_budget_stands_still_from_when_its_run_becomes_ready_in_a_pause) {
  prepare();
  const std::string id = submit("a", [](NewRun& run) { run.budget = 10s; });
  const Claim claim = claim_one(node_, "a");
  advance(1s);
  get(store().pause("account:x", 20s));
  advance(1s);  // running uses the budget
  EXPECT_EQ(settle(node_, claim, Settle::retry, [](Settlement& end) { end.retry_after = 2s; }), RunState::queued);
  advance(2s);  // so does a back-off
  EXPECT_EQ(tick().woken, 1U);
  advance(10s);
  EXPECT_EQ(tick().expired, 0U);
  get(store().resume("account:x"));
  EXPECT_EQ(claim_one(node_, "a").left, Duration(6s));
  EXPECT_EQ(look(id).state, RunState::running);
}

TEST_P(ClockTest, a_deadline_does_not_stand_still_in_a_pause) {
  prepare();
  const std::string id = submit("a", [](NewRun& run) {
    run.budget = 10s;
    run.deadline_in = 20s;
  });
  EXPECT_EQ(settle(node_, claim_one(node_, "a"), Settle::hand_back), RunState::queued);
  get(store().pause("account:x", 1h));
  EXPECT_EQ(look(id).expires_at, world().now() + 20s);
  advance(20s);
  EXPECT_EQ(tick().expired, 1U);
}

TEST_P(ClockTest, a_pause_of_another_agents_limit_changes_nothing) {
  prepare();
  define("b", [](AgentEntry& agent) { agent.limits = {{"account:y", 1}}; });
  begun();
  get(store().pause("account:y", 1h));
  advance(5999ms);
  EXPECT_EQ(tick().expired, 0U);
  advance(1ms);
  EXPECT_EQ(tick().expired, 1U);
}

TEST_P(ClockTest, an_agent_whose_limits_change_follows_their_pauses) {
  prepare();
  const std::string id = begun();
  get(store().pause("account:x", 1h));
  advance(10s);
  define("a");  // without a limit nothing is paused
  advance(2s);
  EXPECT_EQ(claim_one(node_, "a").left, Duration(4s));
  (void)id;
}

}  // namespace
}  // namespace stint::store
