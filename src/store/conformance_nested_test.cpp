// What every store promises to a run that is started from within another: its submitter carries it, and it does not
// wait for limits that its ancestors hold.
#include "store/conformance.hpp"

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using domain::RunState;
using domain::Settle;
using Ids = std::vector<std::string>;

std::function<void(NewRun&)> kept_for(NodeNumber node) {
  return [node](NewRun& run) { run.kept_for = node; };
}

std::function<void(NewRun&)> below(const Claim& parent) {
  return [id = parent.id](NewRun& run) { run.parent = id; };
}

std::function<void(AgentEntry&)> limited_by(std::vector<LimitUse> limits) {
  return [limits = std::move(limits)](AgentEntry& agent) { agent.limits = limits; };
}

/// Of the agent of the first run.
Ready first(const std::vector<Ready>& all) { return all.empty() ? Ready() : all.front(); }

// ---- kept runs -----------------------------------------------------------------------------------------------------

TEST_P(StoreTest, a_kept_run_is_claimed_only_by_its_node) {
  define("a");
  const NodeNumber keeper = enrol(), other = enrol();
  const std::string id = submit("a", kept_for(keeper));
  EXPECT_TRUE(claim(other, "a", 9).empty());
  EXPECT_TRUE(claim(other, "a", 1, id).empty()) << "not by its id, either";
  EXPECT_TRUE(get(store().ready()).empty());
  EXPECT_EQ(get(store().stats()).ready, 0U);
  const std::vector<Claim> claims = claim(keeper, "a", 1, id);
  ASSERT_EQ(claims.size(), 1U);
  EXPECT_EQ(claims[0].id, id);
}

TEST_P(StoreTest, other_nodes_skip_a_kept_run) {
  define("a");
  const NodeNumber keeper = enrol(), other = enrol();
  std::vector<NewRun> batch = {fresh("a"), fresh("a"), fresh("a")};
  batch[0].kept_for = batch[2].kept_for = keeper;
  for (const auto& answer : get(store().enqueue(batch))) EXPECT_TRUE(answer && answer->created);
  const auto again = get(store().enqueue({batch[0]}));
  EXPECT_TRUE(again[0] && !again[0]->created);
  EXPECT_EQ(first(get(store().ready())).runs, 1U);
  EXPECT_EQ(first(get(store().ready(1))).runs, 1U) << "kept runs do not count towards the bound";
  EXPECT_EQ(get(store().why(batch[1].id)).back().place, 1) << "kept runs do not count for its place";
  EXPECT_EQ(get(store().why(batch[2].id)).back().place, 3) << "a kept run has its place among all others";
  EXPECT_EQ(claimed_ids(other, "a", 9), Ids{batch[1].id});
  EXPECT_EQ(claim(keeper, "a", 1, batch[2].id).size(), 1U);
}

TEST_P(StoreTest, a_run_whose_keeper_left_or_died_is_for_any_node) {
  define("a");
  const NodeNumber leaves = enrol(), dies = enrol(), other = enrol();
  const std::string of_leaver = submit("a", kept_for(leaves)), of_dead = submit("a", kept_for(dies));
  const std::string of_unknown = submit("a", kept_for(NodeNumber{4711}));
  EXPECT_EQ(claimed_ids(other, "a", 9), Ids{of_unknown}) << "its keeper never existed";
  get(store().leave(leaves));
  EXPECT_EQ(first(get(store().ready())).runs, 1U);
  EXPECT_EQ(claimed_ids(other, "a", 9), Ids{of_leaver});
  get(store().drain(dies));
  EXPECT_TRUE(claim(other, "a", 9).empty()) << "a draining node is alive";
  world().kill(dies);
  get(store().beat(other));
  EXPECT_TRUE(tick().changed()) << "there is something new to claim";
  EXPECT_EQ(first(get(store().ready())).runs, 1U);
  EXPECT_EQ(claimed_ids(other, "a", 9), Ids{of_dead});
}

TEST_P(StoreTest, a_run_stays_kept_until_it_ends) {
  define("a");
  const NodeNumber keeper = enrol(), other = enrol();
  const std::string id = submit("a", kept_for(keeper));
  const auto carry = [&](Settle how) {
    const std::vector<Claim> claims = claim(keeper, "a", 1, id);
    ASSERT_EQ(claims.size(), 1U) << to_string(how);
    settle(keeper, claims[0], how);
    if (how == Settle::park) get(store().answer(id));
    world().advance(1s);
    get(store().beat(keeper));
    get(store().beat(other));
    tick();
    EXPECT_EQ(state(id), RunState::queued);
    EXPECT_TRUE(claim(other, "a", 9).empty()) << to_string(how);
    EXPECT_TRUE(get(store().ready()).empty()) << to_string(how);
  };
  for (const Settle how : {Settle::retry, Settle::hand_back, Settle::park}) carry(how);
  EXPECT_EQ(claim(keeper, "a", 1, id).size(), 1U);
}

TEST_P(StoreTest, only_the_keeper_of_a_run_takes_a_turn_for_it) {
  define("light", limited_by({{"gpu", 1}}));
  define("heavy", limited_by({{"gpu", 2}}));
  get(store().resize("gpu", 2));
  for (int i = 0; i < 3; ++i) submit("light");
  const NodeNumber keeper = enrol(), other = enrol();
  const std::string id = submit("heavy", kept_for(keeper));
  const Claim one = claim_one(other, "light");
  EXPECT_TRUE(claim(other, "heavy").empty());
  EXPECT_TRUE(claim(other, "heavy", 1, id).empty());
  const Claim two = claim_one(other, "light");
  EXPECT_TRUE(claim(keeper, "heavy", 1, id).empty()) << "it takes the turn";
  settle(other, one, Settle::succeeded);
  EXPECT_EQ(first(get(store().ready())).startable, 0U);
  EXPECT_TRUE(claim(other, "light").empty()) << "the turn counts, as the keeper waits for it";
  settle(other, two, Settle::succeeded);
  EXPECT_EQ(claim(keeper, "heavy", 1, id).size(), 1U);
}

// ---- limits held above ---------------------------------------------------------------------------------------------

TEST_P(StoreTest, a_nested_run_does_not_wait_for_limits_its_ancestors_hold) {
  define("a", limited_by({{"one", 1}}));
  define("b", limited_by({{"one", 3}}));
  get(store().resize("one", 1));
  submit("a");
  const NodeNumber node = enrol();
  const Claim parent = claim_one(node, "a");
  const std::string child = submit("a", below(parent)), stranger = submit("a");
  EXPECT_TRUE(claim(node, "a", 1, stranger).empty()) << "it has no parent";
  const std::vector<Claim> nested = claim(node, "a", 1, child);
  ASSERT_EQ(nested.size(), 1U);
  const std::string grandchild = submit("b", below(nested[0]));
  const std::vector<Claim> deeper = claim(node, "b", 1, grandchild);
  ASSERT_EQ(deeper.size(), 1U) << "its grandparent holds the limit, whatever the weight";
  const auto units = [&] { return get(store().limits())[0].units; };
  EXPECT_EQ(units(), 1) << "counted once";
  EXPECT_EQ(get(store().limits())[0].runs, 1);
  EXPECT_TRUE(claim(node, "a", 1, stranger).empty());
  for (const Claim& each : {deeper[0], nested[0]})
    EXPECT_EQ(settle(node, each, Settle::succeeded), RunState::succeeded);
  EXPECT_EQ(units(), 1);
  settle(node, parent, Settle::succeeded);
  EXPECT_EQ(units(), 0);
  EXPECT_EQ(claim(node, "a", 1, stranger).size(), 1U);
  EXPECT_EQ(units(), 1);
}

TEST_P(StoreTest, a_nested_run_waits_for_limits_no_ancestor_holds) {
  define("a", limited_by({{"one", 1}}));
  define("b", limited_by({{"two", 2}}));
  define("both", limited_by({{"one", 1}, {"two", 2}}));
  get(store().resize("one", 1));
  get(store().resize("two", 3));
  const auto units = [&] {
    std::vector<std::int64_t> found;
    for (const LimitState& limit : get(store().limits())) found.push_back(limit.units);
    return found;
  };
  submit("a");
  submit("b");
  const NodeNumber node = enrol();
  const Claim parent = claim_one(node, "a"), other = claim_one(node, "b");
  const std::string child = submit("both", [&](NewRun& run) {
    run.parent = parent.id;
    run.kept_for = node;
  });
  EXPECT_TRUE(claim(node, "both", 1, child).empty()) << "the other limit is full";
  const std::vector<Why> why = get(store().why(child));
  ASSERT_EQ(why.size(), 2U) << "a limit that its parent holds is not a reason";
  EXPECT_EQ(why[0].limit, "two");
  EXPECT_EQ(why[0].held, 2);
  EXPECT_EQ(why[0].capacity, 3U);
  EXPECT_EQ(why[0].weight, 2U);
  settle(node, other, Settle::succeeded);
  for (int i = 0; i < 3; ++i) {  // each time with the same set
    const std::vector<Claim> claims = claim(node, "both", 1, child);
    ASSERT_EQ(claims.size(), 1U);
    EXPECT_EQ(units(), (std::vector<std::int64_t>{1, 2}));
    settle(node, claims[0], Settle::hand_back);
    EXPECT_EQ(units(), (std::vector<std::int64_t>{1, 0}));
  }
}

TEST_P(StoreTest, a_pause_of_a_limit_held_above_delays_a_nested_run_but_no_ramp_or_turn) {
  define("a", limited_by({{"account:one", 1}}));
  define("heavy", limited_by({{"account:one", 2}}));
  get(store().resize("account:one", 2));
  submit("a");
  const NodeNumber node = enrol();
  const Claim parent = claim_one(node, "a");
  const std::string child = submit("a", below(parent));
  get(store().pause("account:one", 5s));
  EXPECT_TRUE(claim(node, "a", 1, child).empty());
  world().advance(6s);
  get(store().beat(node));
  const std::string heavy = submit("heavy");
  const std::vector<Claim> claims = claim(node, "a", 1, child);
  ASSERT_EQ(claims.size(), 1U) << "the probe is its parent";
  settle(node, claims[0], Settle::hand_back);
  EXPECT_TRUE(claim(node, "heavy", 1, heavy).empty()) << "it takes the turn";
  EXPECT_EQ(claim(node, "a", 1, child).size(), 1U) << "otherwise both would wait for each other";
}

TEST_P(StoreTest, after_its_parent_has_ended_a_run_needs_all_its_limits) {
  define("a", limited_by({{"one", 1}}));
  get(store().resize("one", 1));
  submit("a");
  const NodeNumber node = enrol();
  const Claim parent = claim_one(node, "a");
  const std::string child = submit("a", below(parent));
  const std::vector<Claim> nested = claim(node, "a", 1, child);
  ASSERT_EQ(nested.size(), 1U);
  settle(node, nested[0], Settle::hand_back);
  settle(node, parent, Settle::succeeded);
  const std::string other = submit("a");
  const std::vector<Claim> others = claim(node, "a", 1, other);
  ASSERT_EQ(others.size(), 1U);
  EXPECT_TRUE(claim(node, "a", 1, child).empty());
  settle(node, others[0], Settle::succeeded);
  EXPECT_EQ(claim(node, "a", 1, child).size(), 1U);
  EXPECT_EQ(get(store().limits())[0].units, 1);
}

TEST_P(StoreTest, a_run_not_claimed_by_id_needs_all_its_limits) {
  define("a", limited_by({{"one", 1}}));
  get(store().resize("one", 1));
  submit("a");
  const NodeNumber node = enrol();
  const Claim parent = claim_one(node, "a");
  submit("a", below(parent));
  EXPECT_TRUE(claim(node, "a", 9).empty());
}

}  // namespace
}  // namespace stint::store
