// What every store does with runs that stop or wait: deadlines, budgets, parks, cancels, doubts, sessions.
#include "domain/bounds.hpp"
#include "store/conformance.hpp"

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using domain::Hold;
using domain::OnCrash;
using domain::RunState;
using domain::Settle;
using domain::Stop;
using Ids = std::vector<std::string>;

// ---- deadline, budget, park ----------------------------------------------------------------------------------------

TEST_P(StoreTest, a_deadline_covers_the_queue) {
  define("a");
  const std::string id = submit("a", [&](NewRun& run) { run.deadline = world().now() + 5s; });
  world().advance(6s);
  EXPECT_TRUE(claim(enrol(), "a").empty()) << "not even before a tick";
  EXPECT_EQ(tick().expired, 1U);
  EXPECT_EQ(state(id), RunState::expired);
  EXPECT_EQ(tick().expired, 0U);
}

TEST_P(StoreTest, a_budget_begins_with_the_first_start_and_covers_all_attempts) {
  define("a", [](AgentEntry& agent) { agent.attempts_max = 9; });
  const std::string id = submit("a", [](NewRun& run) { run.budget = 10s; });
  world().advance(1min);
  const NodeNumber node = enrol();
  Claim claim = claim_one(node, "a");
  const auto end = claim.expires_at;
  EXPECT_EQ(end, look(id).expires_at);
  ASSERT_TRUE(end);
  EXPECT_LE(*end, world().now() + 10s);
  EXPECT_EQ(settle(node, claim, Settle::retry), RunState::queued);
  world().advance(9s);
  tick();
  claim = claim_one(node, "a");
  EXPECT_EQ(claim.expires_at, end) << "the second attempt has the rest of the budget";
  world().advance(2s);
  EXPECT_EQ(tick().expired, 1U);
  EXPECT_EQ(state(id), RunState::running) << "its owner is asked to stop";
  const auto stops = get(store().beat(node)).stops;
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops[0].attempt, claim.attempt_key());
  EXPECT_EQ(stops[0].stop, Stop::expired);
  EXPECT_EQ(settle(node, claim, Settle::cancelled), RunState::expired);
}

TEST_P(StoreTest, a_budget_stands_still_while_parked_and_a_deadline_does_not) {
  define("a");
  const std::string id = submit("a", [](NewRun& run) { run.budget = 10s; });
  const NodeNumber node = enrol();
  const Claim claim = claim_one(node, "a");
  world().advance(4s);
  settle(node, claim, Settle::park, [&](Settlement& end) { end.park_for = 8s; });
  EXPECT_EQ(state(id), RunState::parked);
  EXPECT_EQ(hold(id), Hold::quota);
  EXPECT_EQ(look(id).attempt, 0U) << "a park does not count as an attempt";
  world().advance(9s);
  EXPECT_EQ(tick().woken, 1U);
  EXPECT_EQ(state(id), RunState::queued);
  const auto left = claim_one(node, "a").expires_at;
  ASSERT_TRUE(left);
  EXPECT_GT(*left, world().now() + 4s);
  EXPECT_LE(*left, world().now() + 7s);

  submit("a", [&](NewRun& run) { run.deadline = world().now() + 5s; });
  const auto end =
      settle(node, claim_one(node, "a"), Settle::park, [&](Settlement& settlement) { settlement.park_for = 8s; });
  EXPECT_EQ(end, RunState::expired) << "it could not resume before its deadline";
}

TEST_P(StoreTest, a_run_that_waits_for_a_person_waits_until_one_answers) {
  define("a");
  const std::string id = submit("a");
  const NodeNumber node = enrol();
  settle(node, claim_one(node, "a"), Settle::park);
  EXPECT_EQ(hold(id), Hold::person);
  EXPECT_EQ(tick().woken, 0U);
  get(store().answer(id));
  EXPECT_EQ(state(id), RunState::queued);
  EXPECT_EQ(error_of(store().answer(id)), Errc::conflict);
  EXPECT_EQ(error_of(store().answer("zzzzzzzzzzzz")), Errc::invalid);
}

TEST_P(StoreTest, a_person_wakes_one_run_whatever_it_is_parked_for) {
  define("a", [](AgentEntry& agent) { agent.limits = {{"account", 1}}; });
  const std::string id = submit("a", [](NewRun& run) { run.budget = 1min; }), other = submit("a");
  const NodeNumber node = enrol();
  for (const Claim& claim : claim(node, "a", 2)) {
    settle(node, claim, Settle::park, [&](Settlement& end) {
      end.park_on = "account";
      end.park_for = 1h;
    });
  }
  EXPECT_EQ(hold(id), Hold::quota);
  get(store().answer(id));
  EXPECT_EQ(state(id), RunState::queued);
  EXPECT_EQ(hold(id), Hold::none);
  EXPECT_EQ(look(id).not_before, std::nullopt);
  EXPECT_EQ(look(id).expires_at, world().now() + 1h + 1min) << "its budget continues with the account";
  EXPECT_EQ(causes(id).back(), "answered");
  EXPECT_EQ(reasons(id), (Ids{"paused", "place"})) << "the account itself is still paused";
  EXPECT_EQ(state(other), RunState::parked);
  EXPECT_EQ(error_of(store().answer(id)), Errc::conflict);
  EXPECT_EQ(get(store().resume("account")), 1U);
  EXPECT_EQ(claimed_ids(node, "a", 1), Ids{id});
}

// ---- cancel and doubt ----------------------------------------------------------------------------------------------

TEST_P(StoreTest, a_cancel_ends_waiting_runs_and_asks_owners_of_running_ones) {
  define("a");
  const std::string running = submit("a"), waiting = submit("a"),
                    delayed = submit("a", [](NewRun& run) { run.delay = 1h; });
  const NodeNumber node = enrol();
  const Claim claim = claim_one(node, "a");
  for (const std::string& id : {running, waiting, delayed}) EXPECT_EQ(get(store().cancel(id)).size(), 1U);
  EXPECT_EQ(state(waiting), RunState::cancelled);
  EXPECT_EQ(state(delayed), RunState::cancelled);
  EXPECT_EQ(state(running), RunState::running);
  EXPECT_EQ(look(running).stop, Stop::cancelled);
  EXPECT_EQ(get(store().beat(node)).stops.size(), 1U);
  EXPECT_TRUE(get(store().cancel(running)).empty()) << "it was asked already";
  EXPECT_EQ(settle(node, claim, Settle::cancelled), RunState::cancelled);
  EXPECT_TRUE(get(store().cancel(running)).empty()) << "it has ended";
  EXPECT_EQ(error_of(store().cancel("zzzzzzzzzzzz")), Errc::invalid);
  world().advance(2h);
  EXPECT_EQ(tick().woken, 0U);
}

TEST_P(StoreTest, a_cancel_reaches_all_descendants_also_below_ended_runs) {
  define("a");
  const auto below = [](const std::string& parent) { return [parent](NewRun& run) { run.parent = parent; }; };
  const std::string root = submit("a");
  const NodeNumber node = enrol();
  claim_one(node, "a");
  const std::string child = submit("a", below(root));
  const Claim claim = claim_one(node, "a");
  const std::string grandchild = submit("a", below(child)), stranger = submit("a");
  settle(node, claim, Settle::succeeded);
  EXPECT_EQ(get(store().cancel(root)).size(), 2U);
  EXPECT_EQ(state(grandchild), RunState::cancelled);
  EXPECT_EQ(state(stranger), RunState::queued);
  NewRun late = fresh("a");
  late.parent = root;
  EXPECT_EQ(try_submit(late).error(), Errc::conflict) << "a run that is being cancelled accepts no children";
}

TEST_P(StoreTest, an_unknown_outcome_is_put_in_doubt_and_resolved_once) {
  define("a");
  for (const domain::Resolution how : domain::kResolutions) {
    const std::string id = submit("a", [](NewRun& run) { run.budget = 1min; });
    const NodeNumber node = enrol();
    const Claim claim = claim_one(node, "a");
    EXPECT_EQ(error_of(store().resolve(id, how)), Errc::conflict);
    EXPECT_TRUE(get(store().mark(node, claim.attempt_key(), true)));
    EXPECT_EQ(settle(node, claim, Settle::retry), RunState::in_doubt);
    EXPECT_TRUE(this->claim(node, "a").empty());
    EXPECT_TRUE(get(store().cancel(id)).empty()) << "only a person decides";
    world().advance(2min);
    EXPECT_EQ(tick().expired, 0U);
    EXPECT_EQ(get(store().resolve(id, how)), domain::after_resolution(how));
    EXPECT_EQ(error_of(store().resolve(id, how)), Errc::conflict);
    if (how != domain::Resolution::rerun) continue;
    const NodeNumber next = enrol();
    const Claim again = claim_one(next, "a");
    EXPECT_EQ(again.id, id);
    EXPECT_FALSE(look(id).unsafe);
    EXPECT_GT(*again.expires_at, world().now()) << "with a new budget";
    settle(next, again, Settle::succeeded);
  }
}

TEST_P(StoreTest, a_cleared_unsafe_mark_leaves_no_doubt) {
  define("a");
  const std::string id = submit("a");
  const NodeNumber node = enrol();
  const Claim claim = claim_one(node, "a");
  EXPECT_TRUE(get(store().mark(node, claim.attempt_key(), true)));
  EXPECT_TRUE(look(id).unsafe);
  EXPECT_TRUE(get(store().mark(node, claim.attempt_key(), false)));
  EXPECT_EQ(settle(node, claim, Settle::hand_back), RunState::queued);
}

// ---- sessions ------------------------------------------------------------------------------------------------------

TEST_P(StoreTest, runs_of_a_session_do_not_overlap) {
  define("a");
  define("b");
  const auto in_session = [](NewRun& run) { run.session = "s"; };
  const std::string first = submit("a", in_session), second = submit("b", in_session), third = submit("a", in_session);
  const std::string other = submit("a", [](NewRun& run) { run.session = "t"; });
  EXPECT_EQ(hold(second), Hold::session);
  const NodeNumber node = enrol();
  EXPECT_EQ(claimed_ids(node, "a", 9), (Ids{first, other}));
  EXPECT_TRUE(claim(node, "b").empty());
  for (const Claim& claim : get(store().owned(node))) settle(node, claim, Settle::failed);
  EXPECT_EQ(claimed_ids(node, "b", 9), Ids{second});
  EXPECT_EQ(hold(third), Hold::session);
  get(store().cancel(third));
  EXPECT_EQ(state(third), RunState::cancelled) << "also from the middle";
}

TEST_P(StoreTest, which_states_hold_a_session_and_which_release_it) {
  define("a", [](AgentEntry& agent) { agent.attempts_max = 9; });
  const NodeNumber node = enrol();
  int sessions = 0;
  const auto pair = [&](const std::function<void(NewRun&)>& change = {}) {
    const std::string session = "s" + std::to_string(++sessions);
    const std::string head = submit("a", [&](NewRun& run) {
      run.session = session;
      if (change) change(run);
    });
    return std::pair(head, submit("a", [&](NewRun& run) { run.session = session; }));
  };
  {
    const auto [head, next] = pair();
    settle(node, claim_one(node, "a"), Settle::retry);
    EXPECT_EQ(hold(next), Hold::session) << "a back-off keeps the head";
    get(store().cancel(head));
    EXPECT_EQ(hold(next), Hold::none) << "a cancelled head releases the session";
    get(store().cancel(next));
  }
  {
    const auto [head, next] = pair();
    settle(node, claim_one(node, "a"), Settle::park);
    EXPECT_EQ(hold(next), Hold::session) << "parked";
    get(store().cancel(head));
    EXPECT_EQ(hold(next), Hold::none);
    get(store().cancel(next));
  }
  {
    const auto [head, next] = pair();
    const Claim claim = claim_one(node, "a");
    get(store().mark(node, claim.attempt_key(), true));
    settle(node, claim, Settle::retry);
    EXPECT_EQ(state(head), RunState::in_doubt);
    EXPECT_EQ(hold(next), Hold::session) << "in doubt";
    get(store().resolve(head, domain::Resolution::discard));
    EXPECT_EQ(hold(next), Hold::none);
    get(store().cancel(next));
  }
  {
    const auto [head, next] = pair([&](NewRun& run) { run.deadline = world().now() + 1s; });
    world().advance(2s);
    tick();
    EXPECT_EQ(state(head), RunState::expired);
    EXPECT_EQ(hold(next), Hold::none) << "expired";
  }
}

TEST_P(StoreTest, two_runs_of_a_session_may_expire_at_once) {
  define("a");
  const auto brief = [&](NewRun& run) {
    run.session = "s";
    run.deadline = world().now() + 1s;
  };
  const std::string first = submit("a", brief), second = submit("a", brief);
  world().advance(2s);
  EXPECT_EQ(tick().expired, 2U);
  EXPECT_EQ(causes(first), (Ids{"enqueued", "expired"}));
  EXPECT_EQ(causes(second), (Ids{"enqueued", "expired"})) << "it never became the head";
}

TEST_P(StoreTest, a_delay_in_a_session_counts_from_the_submit) {
  define("a");
  const std::string head = submit("a", [](NewRun& run) { run.session = "s"; });
  const std::string next = submit("a", [](NewRun& run) {
    run.session = "s";
    run.delay = 10s;
  });
  const NodeNumber node = enrol();
  settle(node, claim_one(node, "a"), Settle::succeeded);
  EXPECT_EQ(hold(next), Hold::delay);
  world().advance(11s);
  tick();
  EXPECT_EQ(claimed_ids(node, "a", 9), Ids{next});
}

}  // namespace
}  // namespace stint::store
