// What every store does for families: runs that draw on one budget and must not use the session of an ancestor; and
// pruning without a daemon.
#include "store/conformance.hpp"
#include "store/transfer.hpp"

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using domain::RunState;
using domain::Settle;
using Sums = std::vector<FamilyUse>;

// ---- sums ----------------------------------------------------------------------------------------------------------

TEST_P(StoreTest, use_is_added_to_every_budget_that_a_run_draws_on) {
  define("a");
  const NodeNumber node = enrol();
  const std::string head = submit("a"), stranger = submit("a");
  const Claim first = claim_named(node, head);
  const std::string child = submit_below(head, {head});
  const Claim second = claim_named(node, child);
  const std::string grandchild = submit_below(child, {head, child});
  settle(node, claim_named(node, grandchild), Settle::succeeded, using_up(5, 50));
  settle(node, claim_named(node, stranger), Settle::succeeded, using_up(1000, 1000));
  EXPECT_EQ(used(head), (Use{5, 50}));
  EXPECT_EQ(used(child), (Use{5, 50}));
  settle(node, second, Settle::failed, using_up(30, 300));
  EXPECT_EQ(used(child), (Use{35, 350}));
  settle(node, first, Settle::succeeded, using_up(100));
  EXPECT_EQ(get(store().used({child, stranger, head, "zzzzzzzzzzzz"})),
            (Sums{{child, {35, 350}}, {stranger, {1000, 1000}}, {head, {135, 350}}, {"zzzzzzzzzzzz", {}}}));
}

TEST_P(StoreTest, use_of_the_head_before_its_first_child_counts) {
  define("a");
  const NodeNumber node = enrol();
  const std::string head = submit("a");
  settle(node, claim_named(node, head), Settle::hand_back, using_up(40));
  const Claim again = claim_named(node, head);
  report(node, again, 7);
  settle(node, claim_named(node, submit_below(head, {head})), Settle::succeeded, using_up(2));
  EXPECT_EQ(used(head).tokens, 49);
  settle(node, again, Settle::succeeded, using_up(10));
  EXPECT_EQ(used(head).tokens, 52) << "of the ten, seven were counted before";
}

TEST_P(StoreTest, a_report_counts_at_once_and_the_settlement_is_final) {
  define("a");
  const NodeNumber node = enrol();
  const std::string head = submit("a");
  const Claim first = claim_named(node, head);
  EXPECT_EQ(report(node, first, 3), (Sums{{head, {3, 0}}})) << "no other run draws on it yet";
  const std::string child = submit_below(head, {head});
  const Claim second = claim_named(node, child);
  EXPECT_EQ(report(node, second, 10, 1), (Sums{{head, {13, 1}}, {child, {10, 1}}})) << "with its own sum";
  EXPECT_EQ(report(node, second, 10, 1), (Sums{{head, {13, 1}}, {child, {10, 1}}})) << "reported twice, counted once";
  report(node, second, 25, 2);
  EXPECT_EQ(used(head), (Use{28, 2}));
  EXPECT_EQ(look(child).tokens, 25) << "seen while it runs";
  const std::int64_t events = look(child).seq;
  report(node, second, 26, 2);
  EXPECT_EQ(look(child).seq, events) << "a report writes no event";
  settle(node, second, Settle::succeeded, using_up(20, 2));
  EXPECT_EQ(used(head), (Use{23, 2})) << "less than reported";
  EXPECT_EQ(look(child).tokens, 20);
  EXPECT_EQ(report(node, second, 99), std::nullopt) << "stale";
  EXPECT_EQ(settle(node, second, Settle::succeeded, using_up(99)), std::nullopt);
  EXPECT_EQ(used(head), (Use{23, 2}));
}

TEST_P(StoreTest, reported_use_counts_after_the_owner_died) {
  define("a");
  const NodeNumber dies = enrol();
  const std::string head = submit("a");
  const Claim first = claim_named(dies, head);
  const std::string child = submit_below(head, {head});
  report(dies, claim_named(dies, child), 30);
  world().kill(dies);
  tick();
  EXPECT_EQ(state(child), RunState::queued);
  EXPECT_EQ(used(head).tokens, 30);
  EXPECT_EQ(look(child).tokens, 30);
  EXPECT_EQ(report(dies, first, 5), std::nullopt);
  const NodeNumber lives = enrol();
  const Claim again = claim_named(lives, child);
  report(lives, again, 4);
  EXPECT_EQ(used(head).tokens, 34);
  settle(lives, again, Settle::succeeded, using_up(6));
  EXPECT_EQ(used(head).tokens, 36);
}

TEST_P(StoreTest, a_sum_outlives_the_runs_of_its_family) {
  define("a", [](AgentEntry& agent) { agent.queued_max = 10'000; });
  const NodeNumber node = enrol();
  const std::string head = submit("a");
  const Claim first = claim_named(node, head);
  for (int i = 0; i < 3; ++i) {
    settle(node, claim_named(node, submit_below(head, {head})), Settle::succeeded, using_up(10, 1));
  }
  const std::string last = submit_below(head, {head});
  world().advance(10s);
  get(store().beat(node));
  EXPECT_EQ(get(store().prune(-1s, 100)), 3U);
  EXPECT_EQ(used(head), (Use{30, 3})) << "deleted children still count";
  settle(node, first, Settle::succeeded);
  world().advance(10s);
  get(store().beat(node));
  EXPECT_EQ(get(store().prune(-1s, 100)), 1U);
  EXPECT_FALSE(get(store().find(head)));
  EXPECT_EQ(used(head), (Use{30, 3})) << "one run that draws on it is left";
  settle(node, claim_named(node, last), Settle::succeeded, using_up(1));
  EXPECT_EQ(used(head), (Use{31, 3}));
  world().advance(10s);
  get(store().beat(node));
  EXPECT_EQ(get(store().prune(-1s, 100)), 1U);
  EXPECT_EQ(used(head), Use()) << "the sum is deleted with the last of its runs";
}

TEST_P(StoreTest, a_budget_that_no_run_has_is_shared_by_those_that_draw_on_it) {
  define("a");
  const NodeNumber node = enrol();
  const std::string shared = "gggggggggggg";
  const auto drawing = [&](NewRun& run) { run.draws_on = {shared}; };
  EXPECT_EQ(used(shared), Use());
  const std::string first = submit("a", drawing), second = submit("a", drawing), stranger = submit("a");
  const Claim one = claim_named(node, first);
  EXPECT_EQ(report(node, one, 3), (Sums{{shared, {3, 0}}, {first, {3, 0}}}));
  const std::string child = submit_below(first, {shared, first});
  settle(node, claim_named(node, child), Settle::succeeded, using_up(10, 1));
  settle(node, claim_named(node, stranger), Settle::succeeded, using_up(1000));
  settle(node, claim_named(node, second), Settle::succeeded, using_up(5, 1));
  settle(node, one, Settle::succeeded, using_up(4));
  EXPECT_EQ(get(store().used({shared, first})), (Sums{{shared, {19, 2}}, {first, {14, 1}}}));
  EXPECT_FALSE(get(store().find(shared))) << "it is no run";
  const std::string late = submit("a", drawing);
  world().advance(10s);
  get(store().beat(node));
  EXPECT_EQ(get(store().prune(-1s, 100)), 4U);
  EXPECT_EQ(used(shared), (Use{19, 2})) << "one that draws on it is left";
  get(store().cancel(late));
  world().advance(10s);
  get(store().beat(node));
  EXPECT_EQ(get(store().prune(-1s, 100)), 1U);
  EXPECT_EQ(used(shared), Use()) << "with the last of its runs the sum is gone";
}

TEST_P(StoreTest, many_settled_at_once_are_all_counted) {
  define("a", [](AgentEntry& agent) { agent.queued_max = 10'000; });
  const NodeNumber node = enrol();
  const std::string head = submit("a");
  claim_named(node, head);
  std::vector<NewRun> children;
  for (int i = 0; i < 1200; ++i) {  // more than any page
    children.push_back(fresh("a"));
    children.back().parent = head;
    children.back().draws_on = {head};
  }
  for (const auto& answer : get(store().enqueue(std::move(children)))) ASSERT_TRUE(answer);
  std::vector<Settlement> ends;
  for (const Claim& each : claim(node, "a", 1200)) {
    Settlement end;
    end.attempt = each.attempt_key();
    end.settle = Settle::succeeded;
    end.tokens = 3;
    ends.push_back(end);
  }
  ASSERT_EQ(ends.size(), 1200U);
  get(store().settle(node, ends));
  EXPECT_EQ(used(head).tokens, 3600);
}

TEST_P(StoreTest, sums_are_transferred_with_their_runs) {
  define("a");
  const NodeNumber node = enrol();
  const std::string head = submit("a");
  const Claim first = claim_named(node, head);
  settle(node, claim_named(node, submit_below(head, {head})), Settle::succeeded, using_up(10, 1));
  world().advance(10s);
  get(store().beat(node));
  EXPECT_EQ(get(store().prune(-1s, 100)), 1U);
  const std::string child = submit_below(head, {head}), grandchild = submit_below(head, {head, child});
  report(node, first, 5);
  settle(node, first, Settle::hand_back, using_up(5));
  const std::vector<RunRecord> records = get(store().dump({}, 100));
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].families, (Sums{{head, {15, 1}}}));
  ASSERT_EQ(records[2].families.size(), 2U);
  const auto other = GetParam().make();
  const auto there = [&](auto task) { return *other->run(std::move(task)); };
  AgentEntry agent;
  agent.name = "a";
  ASSERT_TRUE(other->run(other->store().define({agent})));
  EXPECT_EQ(there(other->store().load(records)), 3U);
  EXPECT_EQ(there(other->store().load(records)), 0U) << "again";
  EXPECT_EQ(there(other->store().used({head})), (Sums{{head, {15, 1}}}));
  const NodeNumber carries = there(other->store().enrol("test"));
  const std::vector<Claim> claims = there(other->store().claim(carries, "a", 1, grandchild));
  ASSERT_EQ(claims.size(), 1U);
  const auto sums = there(other->store().report(carries, claims[0].attempt_key(), {.tokens = 4}));
  ASSERT_TRUE(sums);
  EXPECT_EQ(there(other->store().used({head, child})), (Sums{{head, {19, 1}}, {child, {4, 0}}}));
}

// ---- sessions ------------------------------------------------------------------------------------------------------

TEST_P(StoreTest, a_run_in_the_session_of_an_ancestor_is_refused) {
  define("a");
  const NodeNumber node = enrol();
  const auto in = [](std::string session, std::string parent = {}) {
    return [=](NewRun& run) {
      run.session = session;
      run.parent = parent;
    };
  };
  const auto refused = [&](const std::string& session, const std::string& parent) {
    NewRun run = fresh("a");
    in(session, parent)(run);
    const auto accepted = try_submit(run);
    EXPECT_FALSE(get(store().find(run.id)));
    return !accepted && accepted.error() == Errc::invalid &&
           accepted.error().describe().find("session '" + session + "'") != std::string::npos;
  };
  const std::string root = submit("a", in("s"));
  const Claim first = claim_named(node, root);
  const std::string child = submit("a", in("t", root));
  const Claim second = claim_named(node, child);
  const std::string grandchild = submit("a", in("", child));
  const Claim third = claim_named(node, grandchild);
  EXPECT_TRUE(refused("t", grandchild)) << "the session of its grandparent";
  EXPECT_TRUE(refused("s", grandchild)) << "the session of the topmost run";
  EXPECT_TRUE(refused("s", child));
  const std::string free = submit("a", in("u", grandchild));
  settle(node, first, Settle::park);
  EXPECT_TRUE(refused("s", grandchild)) << "a parked run holds its session";
  EXPECT_EQ(claim_named(node, free).session, "u");
  get(store().cancel(submit("a", in("s"))));  // other runs may wait there
  settle(node, second, Settle::succeeded);
  EXPECT_EQ(hold(submit("a", in("t", grandchild))), domain::Hold::none) << "an ended run holds nothing";
  settle(node, third, Settle::succeeded);
}

// ---- keys ----------------------------------------------------------------------------------------------------------

TEST_P(StoreTest, a_key_is_found_with_and_without_its_agent) {
  define("a");
  define("b");
  const auto with = [](std::string key, std::string input) {
    return [=](NewRun& run) {
      run.key = key;
      run.input = input;
    };
  };
  const std::string first = submit("a", with("k", "{\"asked\":\"x\"}")), second = submit("b", with("k", "{}"));
  submit("a", with("other", "{}"));
  const auto ids = [&](std::string agent, std::string key) {
    std::vector<std::string> found;
    for (const store::Run& run : get(store().with_key(std::move(agent), std::move(key)))) found.push_back(run.id);
    return found;
  };
  using Found = std::vector<std::string>;
  EXPECT_EQ(ids("a", "k"), Found{first});
  EXPECT_EQ(ids("b", "k"), Found{second});
  EXPECT_EQ(ids("", "k"), (Found{first, second}));
  EXPECT_TRUE(ids("a", "K").empty());
  EXPECT_TRUE(ids("gone", "k").empty());
  define("a", [](AgentEntry& agent) { agent.attempts_max = 9; });
  const auto found = get(store().with_key("a", "k"));
  ASSERT_EQ(found.size(), 1U) << "whatever its agent is now";
  EXPECT_EQ(found[0].input, "{\"asked\":\"x\"}");
}

// ---- pruning -------------------------------------------------------------------------------------------------------

TEST_P(StoreTest, old_runs_are_pruned_once_per_interval_by_any_process) {
  define("a");
  const NodeNumber node = enrol();
  const auto end_some = [&](int count) {
    for (int i = 0; i < count; ++i) get(store().cancel(submit("a")));
    world().advance(10s);
    get(store().beat(node));
  };
  const auto prune = [&](std::uint32_t most) { return get(store().prune_if_due(5s, 1h, most)); };
  end_some(5);
  EXPECT_EQ(prune(3), 3U);
  EXPECT_EQ(prune(3), 2U) << "more is left: it stays due";
  end_some(2);
  EXPECT_EQ(prune(3), 0U) << "another process has done it";
  EXPECT_EQ(get(store().stats()).runs[RunState::cancelled], 2U);
  for (int i = 0; i < 6; ++i) {  // an hour, in steps shorter than a lease
    world().advance(10min);
    get(store().beat(node));
  }
  const std::string young = submit("a");
  get(store().cancel(young));
  EXPECT_EQ(prune(3), 2U);
  EXPECT_TRUE(get(store().find(young))) << "retention is 5 s";
}

}  // namespace
}  // namespace stint::store
