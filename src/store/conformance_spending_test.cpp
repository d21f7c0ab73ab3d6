// What every store keeps about use: by run, and by day and agent.
#include "store/conformance.hpp"

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using domain::RunState;
using domain::Settle;
using Lines = std::vector<std::string>;

const std::string kFirst = "2027-01-15", kSecond = "2027-01-16";  // the clocks of all worlds begin on that morning

Lines lines(const std::vector<Spent>& all) {
  Lines found;
  for (const Spent& one : all) {
    found.push_back(one.day + " " + one.agent + " " + std::to_string(one.runs) + " " + std::to_string(one.tokens) +
                    " " + std::to_string(one.cost_micros));
  }
  return found;
}

TEST_P(StoreTest, use_of_attempts_adds_up_in_their_run) {
  define("a");
  const std::string id = submit("a"), other = submit("a");
  const NodeNumber node = enrol();
  settle(node, claim_one(node, "a"), Settle::hand_back, using_up(100, 7));
  EXPECT_EQ(look(id).tokens, 100);
  const Claim second = claim_one(node, "a");
  EXPECT_EQ(second.id, id);
  settle(node, second, Settle::succeeded, using_up(20, 3));
  EXPECT_EQ(settle(node, second, Settle::succeeded, using_up(1000, 1000)), std::nullopt) << "stale";
  EXPECT_EQ(look(id).tokens, 120);
  EXPECT_EQ(look(id).cost_micros, 10);
  EXPECT_EQ(look(other).tokens, 0);
  const std::vector<store::Run> listed = get(store().list({}));
  ASSERT_EQ(listed.size(), 2U);
  EXPECT_EQ(listed[1].tokens, 120);
  EXPECT_EQ(listed[1].cost_micros, 10);
  EXPECT_EQ(lines(get(store().spent(WallTime()))), Lines{kFirst + " a 2 120 10"});
}

TEST_P(StoreTest, use_is_kept_by_day_and_agent) {
  define("a");
  define("b");
  EXPECT_TRUE(get(store().spent(WallTime())).empty());
  const auto carry = [&](const std::string& agent, int count, std::int64_t tokens) {
    const NodeNumber node = enrol();
    for (int i = 0; i < count; ++i) submit(agent);
    std::vector<Settlement> ends;
    for (const Claim& claim : claim(node, agent, 9)) {
      Settlement end;
      end.attempt = claim.attempt_key();
      end.settle = Settle::failed;
      end.tokens = tokens;
      end.cost_micros = 10 * tokens;
      ends.push_back(end);
      if (ends.size() == 1) ends.push_back(end);  // settled twice: the second is stale
    }
    get(store().settle(node, ends));
    get(store().leave(node));
  };
  const WallTime first = world().now();
  carry("b", 1, 5);
  carry("a", 3, 1);
  carry("a", 1, 100);
  world().advance(24h);
  carry("a", 2, 7);
  EXPECT_EQ(lines(get(store().spent(WallTime()))),
            (Lines{kFirst + " a 4 103 1030", kFirst + " b 1 5 50", kSecond + " a 2 14 140"}));
  EXPECT_EQ(lines(get(store().spent(world().now()))), Lines{kSecond + " a 2 14 140"}) << "from its day on";
  EXPECT_EQ(lines(get(store().spent(first + 1ms))).size(), 3U) << "the whole day";
  EXPECT_EQ(get(store().spent(world().now() + 48h)).size(), 0U);
  EXPECT_EQ(get(store().prune(-1s, 100)), 7U);
  EXPECT_EQ(lines(get(store().spent(WallTime()))),
            (Lines{kFirst + " a 4 103 1030", kFirst + " b 1 5 50", kSecond + " a 2 14 140"}))
      << "the use outlives the deleted runs";
}

TEST_P(StoreTest, a_day_counts_reported_use_at_once_and_replaces_it_by_the_settled_use) {
  define("a");
  const std::string today(kToday);
  const NodeNumber node = enrol();
  EXPECT_EQ(used(today), Use());
  const std::string id = submit("a");
  const Claim claim = claim_named(node, id);
  report(node, claim, 30, 3);
  EXPECT_EQ(used(today), (Use{30, 3}));
  report(node, claim, 50, 5);
  report(node, claim, 50, 5);
  EXPECT_EQ(used(today), (Use{50, 5})) << "said twice, counted once";
  EXPECT_EQ(lines(get(store().spent(WallTime()))), Lines{kFirst + " a 0 50 5"}) << "no attempt has ended";
  settle(node, claim, Settle::succeeded, using_up(40, 9));
  EXPECT_EQ(used(today), (Use{40, 9}));
  EXPECT_EQ(lines(get(store().spent(WallTime()))), Lines{kFirst + " a 1 40 9"});
  EXPECT_EQ(get(store().used({id, today, "zzzzzzzzzzzz"})),
            (std::vector<FamilyUse>{{id, {40, 9}}, {today, {40, 9}}, {"zzzzzzzzzzzz", {}}}));
  world().advance(24h);
  EXPECT_EQ(used(today), Use()) << "another day";
}

TEST_P(StoreTest, what_a_node_reported_before_it_died_counts_once_for_the_run_and_the_day) {
  define("a");
  const std::string id = submit("a"), silent = submit("a");
  const NodeNumber node = enrol();
  const Claim claim = claim_named(node, id);
  claim_named(node, silent);
  report(node, claim, 30, 3);
  world().kill(node);
  tick();
  EXPECT_EQ(state(id), RunState::queued);
  EXPECT_EQ(settle(node, claim, Settle::succeeded, using_up(9, 9)), std::nullopt);
  EXPECT_EQ(report(node, claim, 99), std::nullopt);
  EXPECT_EQ(look(id).tokens, 30);
  EXPECT_EQ(look(silent).tokens, 0) << "it said nothing of what it used";
  EXPECT_EQ(lines(get(store().spent(WallTime()))), Lines{kFirst + " a 0 30 3"});
  const NodeNumber lives = enrol();
  settle(lives, claim_named(lives, id), Settle::succeeded, using_up(5, 1));
  EXPECT_EQ(used(std::string(kToday)), (Use{35, 4}));
  EXPECT_EQ(used(id), (Use{35, 4}));
}

/// Whatever is reported, settled, lost or stale, and on whichever day.
TEST_P(StoreTest, all_days_together_are_what_all_runs_used) {
  define("a", [](AgentEntry& agent) { agent.lost_max = 100; });
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(submit("a", [](NewRun& run) { run.draws_on = {"gggggggggggg"}; }));
  }
  std::int64_t amount = 1;
  for (int day = 0; day < 3; ++day) {
    const NodeNumber dies = enrol(), lives = enrol();
    report(dies, claim_named(dies, ids[0]), amount += 3);
    const Claim less = claim_named(lives, ids[1]), more = claim_named(lives, ids[2]);
    report(lives, less, amount += 7);
    report(lives, more, amount += 1);
    world().advance(5s);
    get(store().beat(lives));
    settle(lives, less, Settle::hand_back, using_up(amount / 2, 0));
    settle(lives, more, Settle::hand_back, using_up(amount * 2, 0));
    settle(lives, claim_named(lives, ids[3]), Settle::hand_back, using_up(amount, 0));
    world().kill(dies);
    get(store().leave(lives));
    tick();
    world().advance(24h);
    std::int64_t by_run = 0, by_day = 0;
    for (const std::string& id : ids) by_run += look(id).tokens;
    for (const Spent& one : get(store().spent(WallTime()))) by_day += one.tokens;
    EXPECT_EQ(by_day, by_run) << "after day " << day;
    EXPECT_EQ(used("gggggggggggg").tokens, by_run);
  }
}

}  // namespace
}  // namespace stint::store
