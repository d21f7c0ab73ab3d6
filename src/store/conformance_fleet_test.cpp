// What every store does for a fleet: nodes that die, limits, events, waiting for work.
#include "stint/combinators.hpp"
#include "store/conformance.hpp"

#include <map>
#include <set>

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using domain::Hold;
using domain::OnCrash;
using domain::RunState;
using domain::Settle;
using domain::Stop;
using Ids = std::vector<std::string>;

// ---- nodes ---------------------------------------------------------------------------------------------------------

TEST_P(StoreTest, the_runs_of_a_dead_node_are_requeued) {
  define("a");
  const std::string rerun = submit("a"), doubt = submit("a", [](NewRun& run) { run.on_crash = OnCrash::doubt; });
  const std::string unsafe = submit("a"), cancelled = submit("a");
  const NodeNumber dead = enrol();
  const auto claims = claim(dead, "a", 4);
  get(store().mark(dead, claims[2].attempt_key(), true));
  get(store().cancel(cancelled));
  world().kill(dead);
  const NodeNumber next = enrol();
  const Ticked ticked = tick();
  EXPECT_EQ(ticked.dead, std::vector<NodeNumber>{dead});
  EXPECT_EQ(ticked.lost, 4U);
  EXPECT_EQ(state(rerun), RunState::queued);
  EXPECT_EQ(look(rerun).attempt, 0U) << "a loss does not count as an attempt";
  EXPECT_EQ(look(rerun).lost, 1U);
  EXPECT_EQ(state(doubt), RunState::in_doubt);
  EXPECT_EQ(state(unsafe), RunState::in_doubt);
  EXPECT_EQ(state(cancelled), RunState::cancelled);
  EXPECT_EQ(claimed_ids(next, "a", 9), Ids{rerun});
  EXPECT_TRUE(tick().dead.empty()) << "once";
}

TEST_P(StoreTest, a_zombie_learns_that_its_lease_is_over) {
  define("a");
  const std::string id = submit("a");
  const NodeNumber zombie = enrol();
  const Claim claim = claim_one(zombie, "a");
  world().kill(zombie);
  tick();
  EXPECT_FALSE(get(store().beat(zombie)).alive);
  EXPECT_EQ(error_of(store().claim(zombie, "a", 1)), Errc::closed);
  EXPECT_EQ(settle(zombie, claim, Settle::succeeded), std::nullopt);
  EXPECT_EQ(state(id), RunState::queued);
}

TEST_P(StoreTest, a_node_that_sends_heartbeats_lives) {
  define("a");
  submit("a");
  const NodeNumber node = enrol();
  const Claim claim = claim_one(node, "a");
  for (int i = 0; i < 10; ++i) {
    world().advance(3s);
    EXPECT_TRUE(get(store().beat(node)).alive);
    EXPECT_TRUE(tick().dead.empty());
  }
  EXPECT_EQ(settle(node, claim, Settle::succeeded), RunState::succeeded);
  EXPECT_FALSE(get(store().beat(NodeNumber{node.value + 1000})).alive) << "never enrolled";
}

TEST_P(StoreTest, a_run_that_kills_its_nodes_fails_after_a_bound) {
  define("a", [](AgentEntry& agent) { agent.lost_max = 3; });
  const std::string id = submit("a");
  for (int i = 0; i < 3; ++i) {
    const NodeNumber node = enrol();
    EXPECT_EQ(claimed_ids(node, "a", 1), Ids{id});
    world().kill(node);
    tick();
    EXPECT_EQ(look(id).error.empty(), i < 2) << "no error while it is retried";
  }
  EXPECT_EQ(state(id), RunState::failed);
  EXPECT_TRUE(look(id).error.contains("lost 3 times")) << look(id).error;
}

TEST_P(StoreTest, a_run_in_doubt_names_the_loss_of_its_process) {
  define("a");
  const std::string id = submit("a", [](NewRun& run) { run.on_crash = domain::OnCrash::doubt; });
  const NodeNumber node = enrol();
  claim_one(node, "a");
  world().kill(node);
  tick();
  EXPECT_EQ(state(id), RunState::in_doubt);
  EXPECT_TRUE(look(id).error.contains("was lost")) << look(id).error;
}

TEST_P(StoreTest, a_node_is_of_the_kind_that_it_enrols_as) {
  get(store().enrol("host run"));
  get(store().enrol("host", NodeKind::one_run));
  const auto nodes = get(store().nodes());
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_TRUE(claims_any(nodes[0])) << "whatever its label says";
  EXPECT_EQ(nodes[1].kind, NodeKind::one_run);
  EXPECT_FALSE(claims_any(nodes[1]));
  get(store().drain(nodes[0].number));
  get(store().drain(nodes[1].number));
  EXPECT_EQ(get(store().nodes())[1].kind, NodeKind::one_run);
  EXPECT_FALSE(claims_any(get(store().nodes())[0])) << "it claims no more runs";
}

TEST_P(StoreTest, nodes_are_listed_with_their_runs_and_last_heartbeat) {
  EXPECT_TRUE(get(store().nodes()).empty());
  define("a");
  for (int i = 0; i < 3; ++i) submit("a");
  const NodeNumber one = get(store().enrol("host-1")), two = get(store().enrol("host-2"));
  const auto claims = claim(one, "a", 2);
  world().advance(4s);
  get(store().beat(two));
  get(store().drain(two));
  world().advance(1s);
  auto nodes = get(store().nodes());
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].number, one);
  EXPECT_EQ(nodes[0].label, "host-1");
  EXPECT_EQ(nodes[0].state, "live");
  EXPECT_EQ(nodes[0].runs, 2U);
  EXPECT_EQ(nodes[0].last_beat_ago, Duration(5s));
  EXPECT_EQ(nodes[1].label, "host-2");
  EXPECT_EQ(nodes[1].state, "draining");
  EXPECT_EQ(nodes[1].runs, 0U);
  EXPECT_EQ(nodes[1].last_beat_ago, Duration(1s));
  settle(one, claims[0], Settle::succeeded);
  get(store().leave(two));
  get(store().beat(one));
  nodes = get(store().nodes());
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[0].runs, 1U);
  EXPECT_EQ(nodes[0].last_beat_ago, Duration::zero());
  world().kill(one);
  tick();
  EXPECT_TRUE(get(store().nodes()).empty()) << "a dead node is not listed";
}

// ---- limits --------------------------------------------------------------------------------------------------------

TEST_P(StoreTest, a_limit_is_never_exceeded) {
  const auto of = [](std::vector<LimitUse> limits) {
    return [limits = std::move(limits)](AgentEntry& agent) { agent.limits = limits; };
  };
  define("light", of({{"gpu", 1}}));
  define("heavy", of({{"gpu", 2}, {"model", 1}}));
  get(store().resize("gpu", 4));
  get(store().resize("model", 1));
  for (int i = 0; i < 6; ++i) {
    submit("light");
    submit("heavy");
  }
  const NodeNumber node = enrol();
  EXPECT_EQ(claim(node, "heavy", 9).size(), 1U) << "the model is full";
  EXPECT_EQ(claim(node, "light", 9).size(), 2U);
  EXPECT_EQ(claim(node, "light", 9).size(), 0U);
  const auto owned = get(store().owned(node));
  settle(node, owned.back(), Settle::succeeded);
  EXPECT_EQ(claim(node, "light", 9).size(), 1U) << "an end frees units";
  get(store().resize("gpu", 2));
  settle(node, get(store().owned(node)).back(), Settle::succeeded);
  EXPECT_EQ(claim(node, "light", 9).size(), 0U) << "three of two are held";
  get(store().resize("gpu", std::nullopt));
  EXPECT_EQ(claim(node, "light", 2).size(), 2U) << "the cap is gone";
  EXPECT_EQ(error_of(store().resize("gpu", 0)), Errc::invalid);
}

TEST_P(StoreTest, a_limit_listed_twice_or_without_weight_is_refused) {
  AgentEntry agent;
  agent.name = "a";
  agent.limits = {{"gpu", 1}, {"gpu", 2}};
  EXPECT_EQ(error_of(store().define({agent})), Errc::invalid);
  agent.limits = {{"gpu", 0}};
  EXPECT_EQ(error_of(store().define({agent})), Errc::invalid);
}

TEST_P(StoreTest, a_run_holds_what_it_was_claimed_with) {
  define("a", [](AgentEntry& agent) { agent.limits = {{"x", 1}}; });
  get(store().resize("x", 2));
  submit("a");
  submit("a");
  submit("a");
  const NodeNumber node = enrol();
  EXPECT_EQ(claim(node, "a", 1).size(), 1U);
  define("a", [](AgentEntry& agent) { agent.limits = {{"x", 2}}; });
  EXPECT_TRUE(claim(node, "a").empty()) << "one unit is held, two are wanted";
  settle(node, get(store().owned(node)).front(), Settle::succeeded);
  EXPECT_EQ(claim(node, "a", 9).size(), 1U);
  for (const LimitState& limit : get(store().limits())) {
    EXPECT_EQ(limit.name, "x");
    EXPECT_EQ(limit.units, 2);
    EXPECT_EQ(limit.runs, 1);
  }
}

TEST_P(StoreTest, a_paused_limit_admits_none_then_one_probe_then_more) {
  define("a", [](AgentEntry& agent) { agent.limits = {{"account:x", 1}}; });
  for (int i = 0; i < 8; ++i) submit("a");
  const NodeNumber node = enrol();
  get(store().pause("account:x", 5s));
  EXPECT_TRUE(claim(node, "a").empty());
  world().advance(6s);
  EXPECT_EQ(claim(node, "a", 9).size(), 1U) << "the probe";
  EXPECT_TRUE(claim(node, "a", 9).empty());
  settle(node, get(store().owned(node)).front(), Settle::succeeded);
  EXPECT_EQ(claim(node, "a", 9).size(), 2U) << "then two";
  settle(node, get(store().owned(node)).front(), Settle::succeeded);
  EXPECT_EQ(claim(node, "a", 9).size(), 3U) << "then four";
  get(store().pause("account:x", std::nullopt));
  EXPECT_TRUE(get(store().limits()).front().paused);
  get(store().beat(node));
  world().advance(10s);
  EXPECT_TRUE(claim(node, "a").empty()) << "until resume()";
  EXPECT_EQ(get(store().resume("account:x")), 0U);
  EXPECT_FALSE(get(store().limits()).front().paused);
}

TEST_P(StoreTest, a_limit_resumed_by_a_person_has_its_full_capacity) {
  define("a", [](AgentEntry& agent) { agent.limits = {{"agent:a", 1}}; });
  for (int i = 0; i < 8; ++i) submit("a");
  const NodeNumber node = enrol();
  get(store().pause("agent:a", std::nullopt));
  EXPECT_TRUE(claim(node, "a", 9).empty());
  get(store().resume("agent:a"));
  EXPECT_EQ(claim(node, "a", 9).size(), 8U);
}

TEST_P(StoreTest, a_park_pauses_its_account_and_a_resume_wakes_parked_runs) {
  define("a", [](AgentEntry& agent) { agent.limits = {{"account:x", 1}}; });
  define("b", [](AgentEntry& agent) { agent.limits = {{"account:x", 1}}; });
  define("c");
  const std::string parked = submit("a"), held_back = submit("b"), free = submit("c");
  const NodeNumber node = enrol();
  settle(node, claim_one(node, "a"), Settle::park, [](Settlement& end) { end.park_on = "account:x"; });
  EXPECT_TRUE(claim(node, "b").empty()) << "the whole account is paused";
  EXPECT_EQ(state(held_back), RunState::queued);
  EXPECT_EQ(claimed_ids(node, "c", 1), Ids{free});
  EXPECT_EQ(get(store().resume("account:x")), 1U);
  EXPECT_EQ(causes(parked).back(), "limit_resumed");
  EXPECT_EQ(claimed_ids(node, "a", 1), Ids{parked}) << "the first of them is the probe";
  EXPECT_TRUE(claim(node, "b").empty());
  const Why why = get(store().why(held_back)).front();
  EXPECT_EQ(why.cause, domain::WaitCause::probe);
  EXPECT_EQ(why.limit, "account:x");
  EXPECT_EQ(why.ramp, 1U);
  ASSERT_EQ(why.holders.size(), 1U);
  EXPECT_EQ(why.holders[0].run, parked);
}

TEST_P(StoreTest, a_heavy_request_is_not_starved_and_starves_no_other) {
  define("light", [](AgentEntry& agent) { agent.limits = {{"gpu", 1}}; });
  define("heavy", [](AgentEntry& agent) { agent.limits = {{"gpu", 4}}; });
  get(store().resize("gpu", 4));
  for (int i = 0; i < 60; ++i) {
    submit("light");
    submit("heavy");
  }
  const NodeNumber node = enrol();
  std::map<std::string, int> served;
  for (int round = 0; round < 60; ++round) {
    for (const char* const agent : {"light", "heavy"}) served[agent] += static_cast<int>(claim(node, agent, 9).size());
    const auto owned = get(store().owned(node));
    if (!owned.empty())
      settle(node, owned.front(), Settle::succeeded);  // one at a time: the limit is never completely free
  }
  EXPECT_GE(served["heavy"], 5);
  EXPECT_GE(served["light"], 5);
}

TEST_P(StoreTest, after_its_turn_a_heavy_request_lets_another_go_first) {
  define("light", [](AgentEntry& agent) { agent.limits = {{"gpu", 1}}; });
  define("heavy", [](AgentEntry& agent) { agent.limits = {{"gpu", 2}}; });
  get(store().resize("gpu", 2));
  for (int i = 0; i < 3; ++i) {
    submit("light");
    submit("heavy");
  }
  const NodeNumber node = enrol();
  const Claim light = claim_one(node, "light");
  EXPECT_TRUE(claim(node, "heavy").empty()) << "it takes the turn";
  EXPECT_TRUE(claim(node, "light").empty()) << "the light one waits for it";
  settle(node, light, Settle::succeeded);
  const Claim heavy = claim_one(node, "heavy");
  EXPECT_TRUE(claim(node, "heavy").empty()) << "it does not take the turn again at once";
  settle(node, heavy, Settle::succeeded);
  EXPECT_EQ(claim(node, "light").size(), 1U);
}

// ---- events --------------------------------------------------------------------------------------------------------

TEST_P(StoreTest, events_of_a_run_have_no_gaps) {
  define("a");
  const std::string id = submit("a");
  const NodeNumber node = enrol();
  Claim claim = claim_one(node, "a");
  EXPECT_TRUE(get(store().note(node, claim.attempt_key(), "tool", R"({"n":1})")));
  settle(node, claim, Settle::hand_back);
  claim = claim_one(node, "a");
  settle(node, claim, Settle::succeeded);
  const auto events = get(store().events(id, 0, 100));
  ASSERT_EQ(causes(id), (Ids{"enqueued", "claimed", "tool", "hand_back", "claimed", "succeeded"}));
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].seq, static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(events[i].run, id);
  }
  EXPECT_EQ(events[2].data, R"({"n":1})");
  EXPECT_EQ(events[1].node, node);
  EXPECT_EQ(events[3].node, node) << "the previous owner";
  EXPECT_LT(events[1].fence, events[4].fence);
  EXPECT_EQ(get(store().events(id, 4, 1)).front().seq, 5);
  EXPECT_EQ(error_of(store().events("zzzzzzzzzzzz", 0, 1)), Errc::invalid);
}

TEST_P(StoreTest, a_settlement_gives_its_data_to_the_event_that_ends_the_attempt) {
  define("a");
  const NodeNumber node = enrol();
  const std::string first = submit("a"), second = submit("a", [](NewRun& run) { run.session = "s"; });
  submit("a", [](NewRun& run) { run.session = "s"; });
  std::vector<Settlement> ends;
  for (const Claim& each : claim(node, "a", 2)) {
    Settlement& end = ends.emplace_back();
    end.attempt = each.attempt_key();
    end.settle = ends.size() == 1 ? Settle::retry : Settle::succeeded;
    if (ends.size() == 1) end.data = R"({"verdict":1})";
  }
  get(store().settle(node, ends));
  const auto data_of = [&](const std::string& id) {
    std::string all;
    for (const Event& event : get(store().events(id, 0, 100))) all += event.cause + event.data + " ";
    return all;
  };
  EXPECT_EQ(data_of(first), R"(enqueued claimed retry{"verdict":1} )");
  EXPECT_EQ(data_of(second), "enqueued claimed succeeded ") << "and only to that one";
}

TEST_P(StoreTest, the_feed_can_be_followed_from_now_on) {
  define("a");
  const auto before = get(store().feed(std::string(kFeedNow), 10));
  EXPECT_TRUE(before.events.empty());
  const std::string first = submit("a");
  const auto page = get(store().feed(before.cursor, 10));
  ASSERT_FALSE(page.events.empty());
  EXPECT_EQ(page.events.back().run, first);
  const auto now = get(store().feed(std::string(kFeedNow), 10));
  EXPECT_TRUE(now.events.empty());
  EXPECT_TRUE(get(store().feed(now.cursor, 10)).events.empty()) << "earlier events are not included";
  const std::string second = submit("a");
  const auto after = get(store().feed(now.cursor, 10));
  ASSERT_EQ(after.events.size(), 1U);
  EXPECT_EQ(after.events.front().run, second);
}

TEST_P(StoreTest, the_feed_has_every_event_once_for_any_page_size) {
  define("a");
  std::map<std::string, std::int64_t> wanted;
  const NodeNumber node = enrol();
  for (int i = 0; i < 7; ++i) {
    submit("a");
    const Claim claim = claim_one(node, "a");
    settle(node, claim, Settle::succeeded);
    wanted[claim.id] = 3;
  }
  for (const std::uint32_t page_size : {1U, 4U, 100U}) {
    std::map<std::string, std::int64_t> seen;
    std::string cursor;
    while (true) {
      const FeedPage page = get(store().feed(cursor, page_size));
      if (page.events.empty()) break;
      for (const Event& event : page.events) {
        if (!event.run.empty()) EXPECT_EQ(event.seq, ++seen[event.run]);
      }
      cursor = page.cursor;
    }
    EXPECT_EQ(seen, wanted) << page_size;
    const std::string late = submit("a");
    const FeedPage page = get(store().feed(cursor, 100));
    ASSERT_EQ(page.events.size(), 1U) << "it continues where it ended";
    EXPECT_EQ(page.events[0].run, late);
    get(store().cancel(late));
    wanted[late] = 2;
  }
  const FeedPage whole = get(store().feed("", 100));
  for (std::size_t i = 0; i < whole.events.size(); ++i) {
    const FeedPage rest = get(store().feed(whole.events[i].cursor, 100));
    ASSERT_EQ(rest.events.size(), whole.events.size() - i - 1) << "the cursor of any event continues with the next";
    for (std::size_t j = 0; j < rest.events.size(); ++j) {
      EXPECT_EQ(rest.events[j].run, whole.events[i + 1 + j].run);
      EXPECT_EQ(rest.events[j].seq, whole.events[i + 1 + j].seq);
    }
  }
  for (const char* const wrong : {"what?", "-1", "1x"}) {
    EXPECT_EQ(error_of(store().feed(wrong, 1)), Errc::invalid) << wrong;
  }
}

TEST_P(StoreTest, a_cursor_that_is_ahead_of_the_feed_is_refused_and_one_of_forgotten_events_is_not) {
  define("a");
  const NodeNumber node = enrol();
  submit("a");
  settle(node, claim_one(node, "a"), Settle::succeeded);
  const std::string now = get(store().feed(std::string(kFeedNow), 10)).cursor;
  const FeedPage page = get(store().feed("", 100));
  std::string ahead = page.cursor;  // a number, or two of them: the first one decides
  const std::size_t digits = std::min(ahead.find('-'), ahead.size());
  ahead.replace(0, digits, std::to_string(std::stoll(ahead.substr(0, digits)) + 1'000'000));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(error_of(store().feed(ahead, 10)), Errc::invalid) << ahead;
  world().advance(2h);
  EXPECT_EQ(get(store().prune(1h, 100)), 1U);
  for (const std::string& known : {now, page.cursor, page.events.front().cursor}) {
    EXPECT_TRUE(get(store().feed(known, 100)).events.empty()) << known;
  }
  EXPECT_EQ(error_of(store().feed(ahead, 10)), Errc::invalid);
  submit("a");
  EXPECT_EQ(get(store().feed(now, 10)).events.size(), 1U);
}

// ---- waiting for work ----------------------------------------------------------------------------------------------

TEST_P(StoreTest, a_wait_ends_when_there_is_work) {
  define("a");
  get(store().wait(0, 50ms));  // any setup of the first wait
  const TimePoint begin = world().reactor().now();
  auto both = [&]() -> Task<Result<>> {
    STINT_CO_TRY(const std::uint64_t seen, co_await store().wait(0, 1ms));
    auto submit_later = [&]() -> Task<Result<>> {
      co_await sleep_for(5ms);
      STINT_CO_CHECK(co_await store().enqueue({fresh("a")}));
      co_return Result<>();
    };
    STINT_CO_CHECK(co_await all(store().wait(seen, 20s), submit_later()));
    co_return Result<>();
  };
  get(both());
  EXPECT_LT(world().reactor().now() - begin, 8s);
}

TEST_P(StoreTest, a_wait_does_not_miss_an_earlier_submit) {
  define("a");
  const std::uint64_t seen = get(store().wait(0, 1ms));
  submit("a");
  const TimePoint begin = world().reactor().now();
  get(store().wait(seen, 20s));
  EXPECT_LT(world().reactor().now() - begin, 8s);
}

TEST_P(StoreTest, a_wait_ends_at_its_bound) {
  const std::uint64_t seen = get(store().wait(0, 1ms));
  get(store().wait(seen, 20ms));
}

}  // namespace
}  // namespace stint::store
