// What every store provides for scheduling: which agents have ready runs, what a claim contains, and turns.
#include "store/conformance.hpp"

#include <algorithm>

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using domain::OnCrash;
using domain::RunState;
using domain::Settle;
using Ids = std::vector<std::string>;

Ids names(const std::vector<Ready>& all) {
  Ids found;
  for (const Ready& one : all) found.push_back(one.agent);
  return found;
}

std::function<void(AgentEntry&)> with(std::vector<LimitUse> limits) {
  return [limits = std::move(limits)](AgentEntry& agent) {
    agent.limits = limits;
    agent.queued_max = 5000;
  };
}

// ---- content of a claim --------------------------------------------------------------------------------------------

TEST_P(StoreTest, a_claim_contains_what_its_node_needs) {
  define("a");
  define("b");
  submit("a", [](NewRun& run) {
    run.session = "s";
    run.on_crash = OnCrash::resume;
    run.budget = 90s;
  });
  submit("b");
  const NodeNumber node = enrol();
  const Claim first = claim_one(node, "a"), second = claim_one(node, "b");
  EXPECT_EQ(first.agent, "a");
  EXPECT_EQ(first.session, "s");
  EXPECT_EQ(first.on_crash, OnCrash::resume);
  EXPECT_FALSE(first.unsafe);
  EXPECT_EQ(first.left, std::optional<Duration>(90s));
  EXPECT_EQ(second.agent, "b");
  EXPECT_EQ(second.session, "");
  EXPECT_EQ(second.on_crash, OnCrash::rerun);
  EXPECT_FALSE(second.left);

  world().advance(10s);
  get(store().mark(node, first.attempt_key(), true));
  const std::vector<Claim> owned = get(store().owned(node));
  ASSERT_EQ(owned.size(), 2U);
  EXPECT_EQ(owned[0].agent, "a");
  EXPECT_EQ(owned[0].session, "s");
  EXPECT_EQ(owned[0].on_crash, OnCrash::resume);
  EXPECT_TRUE(owned[0].unsafe);
  EXPECT_EQ(owned[0].left, std::optional<Duration>(80s)) << "by the store's clock";
  EXPECT_EQ(owned[0].expires_at, first.expires_at);
  EXPECT_EQ(owned[1].agent, "b");
  EXPECT_FALSE(owned[1].unsafe);
  world().advance(100s);
  EXPECT_EQ(get(store().owned(node))[0].left, std::optional(Duration::zero())) << "never less";
}

// ---- ready runs ----------------------------------------------------------------------------------------------------

TEST_P(StoreTest, ready_lists_agents_by_the_rank_of_their_first_run) {
  for (const char* const name : {"a", "b", "c", "d", "e"}) define(name);
  EXPECT_TRUE(get(store().ready()).empty());
  submit("c");
  submit("c");
  world().advance(1s);
  submit("a");
  submit("b", [](NewRun& run) { run.priority = 1; });
  submit("d", [](NewRun& run) { run.delay = 1h; });
  submit("e", [](NewRun& run) { run.session = "s"; });
  submit("e", [](NewRun& run) { run.session = "s"; });
  const std::vector<Ready> ready = get(store().ready());
  EXPECT_EQ(names(ready), (Ids{"b", "c", "a", "e"})) << "without delayed runs, and of a session only the head";
  EXPECT_EQ(ready[0].rank_ms, domain::to_unix_ms(world().now() - 10min));
  EXPECT_EQ(ready[1].rank_ms, domain::to_unix_ms(world().now() - 1s));
  EXPECT_EQ(ready[1].runs, 2U);
  EXPECT_EQ(ready[3].runs, 1U);
  for (const Ready& one : ready) EXPECT_FALSE(one.startable) << one.agent << " has no limit";
  const NodeNumber node = enrol();
  claim(node, "c", 2);
  claim(node, "e");
  EXPECT_EQ(names(get(store().ready())), (Ids{"b", "a"}));
}

TEST_P(StoreTest, ready_counts_what_limits_would_let_start) {
  define("one", with({{"gpu", 1}}));
  define("two", with({{"gpu", 2}, {"account:x", 1}}));
  get(store().resize("gpu", 5));
  for (int i = 0; i < 9; ++i) {
    submit("one");
    submit("two");
  }
  const auto startable = [&](const std::string& agent) {
    const std::vector<Ready> all = get(store().ready());
    const auto found = std::ranges::find(all, agent, &Ready::agent);
    return found == all.end() ? std::nullopt : found->startable;
  };
  EXPECT_EQ(startable("one"), 5U);
  EXPECT_EQ(startable("two"), 2U);
  const NodeNumber node = enrol();
  claim(node, "one", 2);
  EXPECT_EQ(startable("one"), 3U);
  EXPECT_EQ(startable("two"), 1U);
  get(store().pause("account:x", 1s));
  EXPECT_EQ(startable("two"), 0U) << "paused";
  EXPECT_EQ(startable("one"), 3U);
  world().advance(2s);
  EXPECT_EQ(startable("two"), 1U) << "the probe";
  get(store().resize("gpu", 1));
  EXPECT_EQ(startable("one"), 0U) << "more units are held than exist";
  get(store().resize("gpu", 100));
  EXPECT_EQ(startable("one"), 7U) << "bounded by the ready runs";
  get(store().resize("gpu", std::nullopt));
  EXPECT_EQ(startable("one"), std::nullopt);
  EXPECT_EQ(startable("two"), 1U);
}

TEST_P(StoreTest, ready_names_the_limit_that_admits_the_fewest) {
  define("a", with({{"gpu", 1}, {"model", 2}, {"account:x", 1}}));
  get(store().resize("gpu", 2));
  get(store().resize("model", 4));
  const NodeNumber node = enrol();
  for (int i = 0; i < 5; ++i) submit("a");
  const auto blocked_by = [&] { return get(store().ready()).at(0).blocked_by; };
  EXPECT_EQ(blocked_by(), "");
  claim(node, "a", 2);
  EXPECT_EQ(blocked_by(), "gpu") << "both are full: the older limit";
  get(store().resize("gpu", 9));
  EXPECT_EQ(blocked_by(), "model");
  get(store().resize("gpu", 1));
  EXPECT_EQ(blocked_by(), "gpu") << "one unit too many is held";
  get(store().resize("gpu", std::nullopt));
  get(store().resize("model", std::nullopt));
  EXPECT_EQ(blocked_by(), "");
  get(store().pause("account:x", 1h));
  EXPECT_EQ(blocked_by(), "account:x");
}

TEST_P(StoreTest, a_claim_records_what_its_runs_waited_for) {
  define("a");
  const std::string first = submit("a"), second = submit("a"), third = submit("a");
  const NodeNumber node = enrol();
  ASSERT_EQ(get(store().claim(node, "a", 1, "", "")).size(), 1U);
  ASSERT_EQ(get(store().claim(node, "a", 2, "", R"({"waits":[1]})")).size(), 2U);
  const auto data = [&](const std::string& id) {
    const std::vector<Event> events = get(store().events(id, 0, 10));
    EXPECT_EQ(events.back().cause, "claimed");
    return events.back().data;
  };
  EXPECT_EQ(data(first), "") << "a later claim of the node does not touch it";
  EXPECT_EQ(data(second), R"({"waits":[1]})");
  EXPECT_EQ(data(third), R"({"waits":[1]})");
}

TEST_P(StoreTest, the_first_and_the_last_event_are_the_times_of_the_run) {
  define("a");
  const NodeNumber node = enrol();
  const std::string done = submit("a", [](NewRun& run) { run.delay = 1s; }), never = submit("a");
  world().advance(1500ms);
  tick();
  const Claim claim = claim_named(node, done);
  world().advance(250ms);
  settle(node, claim, domain::Settle::succeeded);
  get(store().cancel(never));
  for (const std::string& id : {done, never}) {
    const store::Run run = look(id);
    const std::vector<Event> events = get(store().events(id, 0, 10));
    EXPECT_EQ(events.front().at, run.created_at);
    EXPECT_EQ(events.back().at, run.finished_at);
  }
}

TEST_P(StoreTest, ready_stops_counting_at_its_bound) {
  define("a", with({{"gpu", 1}}));
  get(store().resize("gpu", 4000));
  std::vector<NewRun> many;
  for (std::uint32_t i = 0; i < kReadyMax + 5; ++i) {
    NewRun run = fresh("a");
    for (std::uint32_t digits = i, at = 0; at < 4; ++at, digits /= 26)
      run.id[at] = static_cast<char>('a' + digits % 26);
    many.push_back(std::move(run));
  }
  const WallTime first = world().now();
  for (const auto& answer : get(store().enqueue(many))) ASSERT_TRUE(answer) << answer.error().describe();
  const std::vector<Ready> ready = get(store().ready());
  ASSERT_EQ(ready.size(), 1U);
  EXPECT_EQ(ready[0].runs, kReadyMax);
  EXPECT_EQ(ready[0].startable, kReadyMax);
  EXPECT_EQ(ready[0].rank_ms, domain::to_unix_ms(first));
  EXPECT_EQ(get(store().ready(3)).front().runs, 3U);
  EXPECT_EQ(get(store().ready(3)).front().startable, 3U);
}

// ---- turns ---------------------------------------------------------------------------------------------------------

TEST_P(StoreTest, the_turn_of_an_agent_with_nothing_to_start_does_not_count) {
  define("light", with({{"gpu", 1}}));
  define("heavy", with({{"gpu", 2}}));
  get(store().resize("gpu", 2));
  for (int i = 0; i < 3; ++i) submit("light");
  world().advance(1ms);
  const std::string waits = submit("heavy");
  const NodeNumber node = enrol();
  claim_one(node, "light");
  EXPECT_TRUE(claim(node, "heavy").empty()) << "it takes the turn";
  const auto of_light = [&] { return get(store().ready()).front(); };
  EXPECT_EQ(of_light().agent, "light");
  EXPECT_EQ(of_light().startable, 0U) << "the light one waits for it";
  EXPECT_TRUE(claim(node, "light").empty());
  get(store().cancel(waits));
  EXPECT_EQ(of_light().startable, 1U);
  Filter light;
  light.agent = "light";
  EXPECT_EQ(reasons(get(store().list(light)).front().id), Ids{"place"});
  EXPECT_EQ(claim(node, "light").size(), 1U) << "the turn is no longer needed";
}

TEST_P(StoreTest, ready_reports_that_a_claim_would_take_the_turn) {
  define("light", with({{"gpu", 1}}));
  define("heavy", with({{"gpu", 2}}));
  get(store().resize("gpu", 2));
  for (int i = 0; i < 3; ++i) submit("light");
  world().advance(1ms);
  submit("heavy");
  const NodeNumber node = enrol();
  const auto takes_turn = [&](const std::string& agent) {
    const std::vector<Ready> all = get(store().ready());
    const auto found = std::ranges::find(all, agent, &Ready::agent);
    return found != all.end() && found->takes_turn;
  };
  EXPECT_FALSE(takes_turn("heavy")) << "it fits";
  const Claim first = claim_one(node, "light");
  EXPECT_TRUE(takes_turn("heavy"));
  EXPECT_FALSE(takes_turn("light")) << "a weight of one needs no turn";
  EXPECT_TRUE(claim(node, "heavy").empty());
  EXPECT_TRUE(takes_turn("heavy")) << "a repeated claim keeps it";
  get(store().pause("gpu", std::nullopt));
  EXPECT_FALSE(takes_turn("heavy")) << "a pause applies to all";
  get(store().resume("gpu"));
  settle(node, first, domain::Settle::succeeded);
  EXPECT_FALSE(takes_turn("heavy")) << "it fits";
  settle(node, claim_one(node, "heavy"), domain::Settle::succeeded);
  submit("heavy");
  claim_one(node, "light");
  EXPECT_TRUE(takes_turn("heavy")) << "another agent was served in between";
}

// ---- configuration -------------------------------------------------------------------------------------------------

TEST_P(StoreTest, a_configured_capacity_changes_with_the_configuration_or_a_resize) {
  define("a", with({{"agent:a", 1}, {"account:x", 1}}));
  const auto capacity = [&](const std::string& name) {
    const std::vector<LimitState> all = get(store().limits());
    return std::ranges::find(all, name, &LimitState::name)->capacity;
  };
  get(store().configure({{"agent:a", 3}, {"account:x", 5}}, {"a"}));
  EXPECT_EQ(capacity("agent:a"), 3U);
  get(store().resize("agent:a", 2));
  get(store().configure({{"agent:a", 3}, {"account:x", 5}}, {"a"}));
  EXPECT_EQ(capacity("agent:a"), 2U) << "the configuration is unchanged: the resize stays";
  get(store().configure({{"agent:a", 4}, {"account:x", 5}}, {"a"}));
  EXPECT_EQ(capacity("agent:a"), 4U);
  get(store().resize("agent:a", 2));
  get(store().configure({{"account:x", 5}}, {"a"}));
  EXPECT_EQ(capacity("agent:a"), std::nullopt) << "the configuration no longer names it";
  EXPECT_EQ(capacity("account:x"), 5U);
  for (int i = 0; i < 5; ++i) submit("a");
  EXPECT_EQ(claim(enrol(), "a", 9).size(), 5U);
  EXPECT_EQ(error_of(store().configure({{"agent:a", 0}}, {})), Errc::invalid);
}

TEST_P(StoreTest, a_configuration_resets_no_capacity_of_other_projects) {
  define("a", with({{"account:x", 1}}));
  define("b", with({{"account:x", 1}}));
  const auto capacity = [&] { return get(store().limits()).front().capacity; };
  get(store().configure({{"account:x", 5}}, {"a"}));
  get(store().configure({}, {"b"}));
  EXPECT_EQ(capacity(), 5U) << "an agent of another project uses it";
  get(store().configure({}, {}));
  EXPECT_EQ(capacity(), 5U) << "the configuration names nothing";
  get(store().configure({}, {"a", "b"}));
  EXPECT_EQ(capacity(), std::nullopt);
  get(store().resize("account:x", 7));
  get(store().configure({}, {"a", "b"}));
  EXPECT_EQ(capacity(), 7U) << "it was never configured";
}

// ---- answers of a provider -----------------------------------------------------------------------------------------

TEST_P(StoreTest, an_answer_of_the_provider_widens_the_ramp_before_the_run_has_ended) {
  define("a", with({{"account:x", 1}}));
  for (int i = 0; i < 8; ++i) submit("a");
  const NodeNumber node = enrol();
  get(store().pause("account:x", std::nullopt));
  get(store().resume("account:x"));
  const Claim probe = claim_one(node, "a");
  EXPECT_TRUE(claim(node, "a", 9).empty());
  EXPECT_FALSE(get(store().provider_answered(node, {probe.run, Fence{probe.fence.value + 1}}))) << "stale";
  EXPECT_TRUE(claim(node, "a", 9).empty());
  EXPECT_TRUE(get(store().provider_answered(node, probe.attempt_key())));
  EXPECT_EQ(claim(node, "a", 9).size(), 1U) << "two at once";
  EXPECT_EQ(state(probe.id), domain::RunState::running);
  settle(node, probe, domain::Settle::succeeded);
  EXPECT_FALSE(get(store().provider_answered(node, probe.attempt_key())));
  define("steady");
  submit("steady");
  const Claim other = claim_one(node, "steady");
  EXPECT_TRUE(get(store().provider_answered(node, other.attempt_key()))) << "nothing to widen";
}

TEST_P(StoreTest, a_claim_by_id_takes_that_run_only) {
  define("a", [](AgentEntry& entry) { entry.limits = {{"one", 1}}; });
  get(store().resize("one", 1));
  const std::string first = submit("a"), second = submit("a");
  const NodeNumber node = enrol();
  const std::vector<Claim> claims = get(store().claim(node, "a", 5, second));
  ASSERT_EQ(claims.size(), 1U);
  EXPECT_EQ(claims.front().id, second);
  EXPECT_TRUE(get(store().claim(node, "a", 1, second)).empty()) << "already claimed";
  EXPECT_TRUE(get(store().claim(node, "a", 1, first)).empty()) << "the limit is full";
  settle(node, claims.front(), domain::Settle::succeeded);
  EXPECT_EQ(get(store().claim(node, "a", 1, first)).size(), 1U);
}

}  // namespace
}  // namespace stint::store
