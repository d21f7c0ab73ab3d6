// The queries of every store: reasons, holders, lists, sums, output.
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
using Ids = std::vector<std::string>;

TEST_P(StoreTest, every_wait_has_a_reason) {
  define("a", [](AgentEntry& agent) { agent.limits = {{"gpu", 1}}; });
  get(store().resize("gpu", 1));
  const NodeNumber node = enrol();
  const auto in_session = [](NewRun& run) { run.session = "s"; };
  const std::string runs = submit("a", in_session), behind = submit("a", in_session);
  claim_one(node, "a");
  EXPECT_EQ(reasons(runs), Ids{}) << "it is running";
  EXPECT_EQ(reasons(behind), Ids{"session"});
  EXPECT_EQ(get(store().why(behind)).front().behind, runs);
  EXPECT_EQ(get(store().why(behind)).front().behind_state, RunState::running);
  const std::string first = submit("a"), second = submit("a");
  EXPECT_EQ(reasons(first), (Ids{"limit", "place"}));
  const Why limited = get(store().why(first)).front();
  EXPECT_EQ(limited.limit, "gpu");
  EXPECT_EQ(limited.capacity, 1U);
  EXPECT_EQ(limited.held, 1);
  EXPECT_EQ(limited.weight, 1U);
  EXPECT_FALSE(limited.until);
  ASSERT_EQ(limited.holders.size(), 1U);
  EXPECT_EQ(limited.holders[0], (LimitHolder{runs, "a", 1, look(runs).started_at.value_or(WallTime())}));
  EXPECT_EQ(get(store().why(second)).back().place, 2);
  const std::string later = submit("a", [](NewRun& run) { run.delay = 1h; });
  EXPECT_EQ(reasons(later), Ids{"delay"});
  EXPECT_EQ(get(store().why(later)).front().until, look(later).not_before);
  get(store().pause("gpu", std::nullopt));
  EXPECT_EQ(reasons(first), (Ids{"paused", "place"}));
  EXPECT_EQ(get(store().why(first)).front().limit, "gpu");
  EXPECT_EQ(error_of(store().why("zzzzzzzzzzzz")), Errc::invalid);
}

TEST_P(StoreTest, a_parked_run_names_the_limit_it_is_parked_on) {
  define("a", [](AgentEntry& agent) { agent.limits = {{"account:x", 1}}; });
  const std::string until_reset = submit("a"), until_answer = submit("a");
  const NodeNumber node = enrol();
  const std::vector<Claim> claims = claim(node, "a", 2);
  ASSERT_EQ(claims.size(), 2U);
  settle(node, claims[0], Settle::park, [](Settlement& end) {
    end.park_on = "account:x";
    end.park_for = 1h;
  });
  settle(node, claims[1], Settle::park);
  const Why quota = get(store().why(until_reset)).front(), person = get(store().why(until_answer)).front();
  EXPECT_EQ(quota.cause, domain::WaitCause::quota);
  EXPECT_EQ(quota.limit, "account:x");
  EXPECT_EQ(quota.until, look(until_reset).not_before);
  EXPECT_EQ(person.cause, domain::WaitCause::person);
  EXPECT_EQ(person.limit, "");
  EXPECT_FALSE(person.until);
}

TEST_P(StoreTest, a_turn_names_the_agent_that_is_served_first) {
  define("light", [](AgentEntry& agent) { agent.limits = {{"gpu", 1}}; });
  define("heavy", [](AgentEntry& agent) { agent.limits = {{"gpu", 2}}; });
  get(store().resize("gpu", 2));
  const std::string runs = submit("light"), waits = submit("light");
  submit("heavy");
  const NodeNumber node = enrol();
  claim_one(node, "light");
  EXPECT_TRUE(claim(node, "heavy").empty()) << "it takes the turn";
  const Why why = get(store().why(waits)).front();
  EXPECT_EQ(why.cause, domain::WaitCause::turn);
  EXPECT_EQ(why.limit, "gpu");
  EXPECT_EQ(why.turn_of, "heavy");
  EXPECT_EQ(why.ahead, 0U) << "the heavy one was submitted later";
  EXPECT_TRUE(why.until);
  ASSERT_EQ(why.holders.size(), 1U);
  EXPECT_EQ(why.holders[0].run, runs);
}

TEST_P(StoreTest, a_limit_lists_its_holders_and_its_line) {
  define("a", [](AgentEntry& agent) { agent.limits = {{"gpu", 1}}; });
  define("b", [](AgentEntry& agent) { agent.limits = {{"gpu", 2}, {"other", 1}}; });
  get(store().resize("gpu", 3));
  const NodeNumber node = enrol();
  const std::string first = submit("b");
  claim_one(node, "b");
  world().advance(1s);
  const std::string second = submit("a");
  claim_one(node, "a");
  define("b", [](AgentEntry& agent) { agent.limits = {{"gpu", 3}}; });
  const std::string third = submit("a");
  world().advance(1s);
  const std::string urgent = submit("b", [](NewRun& run) { run.priority = 1; });
  const auto since = [&](const std::string& id) { return look(id).started_at.value_or(WallTime()); };
  std::vector<LimitState> limits = get(store().limits(10));
  ASSERT_EQ(limits.size(), 2U);
  EXPECT_EQ(limits[0].holders,
            (std::vector<LimitHolder>{{first, "b", 2, since(first)}, {second, "a", 1, since(second)}}))
      << "earliest claim first, with the weight of the claim";
  EXPECT_EQ(limits[0].line,
            (std::vector<LimitWaiter>{{urgent, "b", 3, world().now()}, {third, "a", 1, world().now() - 1s}}))
      << "by rank, over all agents";
  EXPECT_EQ(limits[1].holders, (std::vector<LimitHolder>{{first, "b", 1, since(first)}}));
  EXPECT_TRUE(limits[1].line.empty()) << "no agent uses it now";
  limits = get(store().limits(1));
  EXPECT_EQ(limits[0].holders.size(), 1U);
  EXPECT_EQ(limits[0].line.size(), 1U);
  EXPECT_EQ(limits[0].units, 3) << "the sums count all";
  limits = get(store().limits());
  EXPECT_TRUE(limits[0].holders.empty() && limits[0].line.empty());
}

TEST_P(StoreTest, a_limit_counts_its_whole_line) {
  define("a", [](AgentEntry& agent) { agent.limits = {{"gpu", 1}}; });
  define("b", [](AgentEntry& agent) { agent.limits = {{"gpu", 2}, {"other", 1}}; });
  define("c");
  get(store().resize("gpu", 1));
  constexpr std::uint32_t kMany = kLimitListMax + 1;
  std::vector<NewRun> runs;
  for (std::uint32_t i = 0; i < kMany; ++i) runs.push_back(fresh("a"));
  get(store().enqueue(std::move(runs)));
  submit("b");
  submit("c");
  submit("a", [](NewRun& run) { run.delay = 1h; });
  const auto in_session = [](NewRun& run) { run.session = "s"; };
  submit("b", in_session);
  submit("b", in_session);
  const auto waiting = [&](std::uint32_t listed) {
    std::vector<std::uint64_t> found;
    for (const LimitState& limit : get(store().limits(listed))) found.push_back(limit.waiting);
    return found;
  };
  using Counts = std::vector<std::uint64_t>;
  EXPECT_EQ(waiting(0), (Counts{kMany + 2, 2})) << "ready runs only, without listing them";
  EXPECT_EQ(waiting(kLimitListMax), waiting(0)) << "not bounded by the list";
  claim_one(enrol(), "a");
  EXPECT_EQ(waiting(0), (Counts{kMany + 1, 2})) << "a running one waits no more";
  define("b", [](AgentEntry& agent) { agent.limits = {{"gpu", 2}}; });
  EXPECT_EQ(waiting(0), (Counts{kMany + 1, 0})) << "by what the agents use now";
}

TEST_P(StoreTest, a_reason_counts_the_runs_ahead_in_the_line_of_its_limit) {
  define("a", [](AgentEntry& agent) { agent.limits = {{"gpu", 1}}; });
  define("b", [](AgentEntry& agent) { agent.limits = {{"gpu", 1}}; });
  define("c");
  get(store().resize("gpu", 1));
  const NodeNumber node = enrol();
  submit("a");
  claim_one(node, "a");
  for (const char* const agent : {"a", "b", "c", "b", "a"}) {
    world().advance(1s);
    submit(agent);
  }
  submit("b", [](NewRun& run) { run.priority = 1; });
  submit("a", [](NewRun& run) { run.delay = 1h; });
  const std::vector<LimitWaiter> line = get(store().limits(10)).front().line;
  ASSERT_EQ(line.size(), 5U);
  for (std::uint32_t ahead = 0; ahead < line.size(); ++ahead) {
    EXPECT_EQ(get(store().why(line[ahead].run)).front().ahead, ahead) << "over all agents";
  }
  get(store().pause("gpu", std::nullopt));
  EXPECT_FALSE(get(store().why(line[1].run)).front().ahead) << "a pause has no line";
  EXPECT_FALSE(get(store().why(line[1].run)).back().ahead) << "nor has a place in the queue of an agent";
}

TEST_P(StoreTest, the_count_of_runs_ahead_has_a_bound) {
  define("a", [](AgentEntry& agent) {
    agent.limits = {{"gpu", 1}};
    agent.queued_max = 5000;
  });
  get(store().resize("gpu", 1));
  std::vector<NewRun> runs;
  for (std::int64_t i = 0; i < kPlaceMax + 2; ++i) runs.push_back(fresh("a"));
  get(store().enqueue(std::move(runs)));
  claim_one(enrol(), "a");
  const auto ahead = [&] { return get(store().why(submit("a"))).front().ahead; };
  EXPECT_EQ(ahead(), static_cast<std::uint32_t>(kPlaceMax));
}

TEST_P(StoreTest, the_lists_of_a_limit_have_a_bound) {
  define("a", [](AgentEntry& agent) { agent.limits = {{"gpu", 1}}; });
  constexpr std::uint32_t kHeld = kLimitListMax + 1;
  get(store().resize("gpu", kHeld));
  std::vector<NewRun> runs;
  for (std::uint32_t i = 0; i < kHeld; ++i) runs.push_back(fresh("a"));
  get(store().enqueue(std::move(runs)));
  const NodeNumber node = enrol();
  ASSERT_EQ(claim(node, "a", kHeld).size(), kHeld);
  const std::string waits = submit("a");
  EXPECT_EQ(get(store().limits(10'000)).front().holders.size(), kLimitListMax);
  EXPECT_EQ(get(store().why(waits)).front().holders.size(), kLimitListMax);
  EXPECT_EQ(get(store().why(waits)).front().held, std::int64_t{kHeld});
}

TEST_P(StoreTest, an_id_may_be_shortened_while_it_names_one) {
  define("a");
  NewRun one = fresh("a"), two = fresh("a");
  one.id = "abcdefghijkl";
  two.id = "abcxyzabcxyz";
  ASSERT_TRUE(try_submit(one));
  ASSERT_TRUE(try_submit(two));
  EXPECT_EQ(look("abcd").id, one.id);
  EXPECT_EQ(error_of(store().find("abc")), Errc::invalid);
  EXPECT_FALSE(get(store().find("zzz")));
  EXPECT_FALSE(get(store().find("")));
  EXPECT_FALSE(get(store().find("%")));
}

TEST_P(StoreTest, a_list_is_filtered_and_paged_newest_first) {
  define("a");
  define("b");
  Ids ids;
  for (int i = 0; i < 6; ++i) {
    ids.push_back(submit(i % 2 == 0 ? "a" : "b", [&](NewRun& run) {
      run.input = "{}";
      if (i < 2) run.session = "s" + std::to_string(i);
    }));
  }
  claim_one(enrol(), "b");
  const auto listed = [&](const Filter& filter) {
    Ids found;
    for (const store::Run& run : get(store().list(filter))) found.push_back(run.id);
    return found;
  };
  Filter filter;
  filter.most = 4;
  EXPECT_EQ(listed(filter), (Ids{ids[5], ids[4], ids[3], ids[2]}));
  filter.before = look(ids[2]).number;
  EXPECT_EQ(listed(filter), (Ids{ids[1], ids[0]}));
  filter = {};
  filter.agent = "b";
  EXPECT_EQ(listed(filter), (Ids{ids[5], ids[3], ids[1]}));
  filter.states = {RunState::running};
  EXPECT_EQ(listed(filter), Ids{ids[1]});
  filter.states = {RunState::running, RunState::queued};
  EXPECT_EQ(listed(filter), (Ids{ids[5], ids[3], ids[1]}));
  filter.states = {RunState::succeeded, RunState::parked};
  EXPECT_EQ(listed(filter), Ids{});
  filter = {};
  filter.session = "s0";
  EXPECT_EQ(listed(filter), Ids{ids[0]});
}

TEST_P(StoreTest, a_list_has_inputs_and_results_only_if_they_are_asked_for) {
  define("a");
  const NodeNumber node = enrol();
  submit("a", [](NewRun& run) { run.input = "{}"; });
  const Claim claim = claim_one(node, "a");
  Settlement end;
  end.attempt = claim.attempt_key();
  end.settle = Settle::succeeded;
  end.result = "[1]";
  get(store().settle(node, {end}));
  Filter filter;
  EXPECT_EQ(get(store().list(filter)).front().input, "");
  EXPECT_EQ(get(store().list(filter)).front().result, "");
  filter.texts = true;
  EXPECT_EQ(get(store().list(filter)).front().input, "{}");
  EXPECT_EQ(get(store().list(filter)).front().result, "[1]");
}

TEST_P(StoreTest, a_list_reads_only_the_shown_part_of_a_long_text) {
  define("a");
  const NodeNumber node = enrol();
  const std::string big(100'000, 'x');
  const std::string id =
      submit("a", [&](NewRun& run) { run.input = R"({"prompt":")" + big + R"(\u0000","title":"t ü"})"; });
  const Claim claim = claim_one(node, "a");
  Settlement end;
  end.attempt = claim.attempt_key();
  end.settle = Settle::succeeded;
  end.result = R"({"usage":{"out":3},"text":")" + big + "\"}";
  get(store().settle(node, {end}));
  Filter filter;
  filter.texts = true;
  filter.text_bytes_max = 1000;
  const auto dense = [](std::string text) {
    std::erase_if(text, [](char c) { return c == ' '; });
    return text;
  };
  const store::Run run = get(store().list(filter)).front();
  EXPECT_EQ(dense(run.input), R"({"title":"tü"})");
  EXPECT_EQ(dense(run.result), R"({"usage":{"out":3}})");
  filter.text_bytes_max = 200'000;
  EXPECT_EQ(get(store().list(filter)).front().result, end.result);
  EXPECT_EQ(look(id).result, end.result) << "a single run is read completely";
}

TEST_P(StoreTest, queues_report_their_length_and_bound) {
  define("a", [](AgentEntry& agent) { agent.queued_max = 3; });
  define("b");
  const NodeNumber node = enrol();
  submit("a");
  submit("a", [](NewRun& run) { run.delay = 1h; });
  submit("a", [](NewRun& run) { run.session = "s"; });
  const auto sizes = [&] {
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> found;
    for (const QueueState& each : get(store().queues())) found[each.agent] = {each.queued, each.queued_max};
    return found;
  };
  EXPECT_EQ(sizes().at("a"), std::pair(std::uint64_t{3}, std::uint64_t{3}));
  EXPECT_EQ(sizes().at("b").first, 0U);
  EXPECT_EQ(try_submit(fresh("a")).error(), Errc::full);
  claim_one(node, "a");
  EXPECT_EQ(sizes().at("a").first, 2U) << "a running run is not queued";
}

TEST_P(StoreTest, a_list_of_states_and_one_of_children_have_all_of_them) {
  make_run_of_every_kind();
  submit("a", [](NewRun& run) { run.session = "t"; });
  submit("b", [](NewRun& run) { run.session = "t"; });
  const NodeNumber node = enrol();
  const Claim parent = claim_one(node, "c");
  Ids children;
  for (int i = 0; i < 3; ++i) children.push_back(submit("a", [&](NewRun& run) { run.parent = parent.id; }));
  get(store().cancel(children[1]));
  std::vector<store::Run> all = get(store().list({}));
  for (unsigned bits = 0; bits < 256; ++bits) {
    Filter filter;
    for (std::size_t i = 0; i < domain::kRunStates.size(); ++i) {
      if ((bits >> i & 1U) != 0) filter.states.push_back(domain::kRunStates[i]);
    }
    Ids wanted, found;
    for (const store::Run& run : all) {
      if (bits == 0 || std::ranges::find(filter.states, run.state) != filter.states.end()) wanted.push_back(run.id);
    }
    for (const store::Run& run : get(store().list(filter))) found.push_back(run.id);
    EXPECT_EQ(found, wanted) << bits;
  }
  const auto listed = [&](const Filter& filter) {
    Ids found;
    for (const store::Run& run : get(store().list(filter))) found.push_back(run.id);
    return found;
  };
  Filter filter;
  filter.parent = parent.id;
  EXPECT_EQ(listed(filter), (Ids{children[2], children[1], children[0]}));
  filter.states = {RunState::queued};
  EXPECT_EQ(listed(filter), (Ids{children[2], children[0]}));
  filter.before = look(children[2]).number;
  EXPECT_EQ(listed(filter), Ids{children[0]});
  filter.agent = "b";
  EXPECT_EQ(listed(filter), Ids{});
  filter = {};
  filter.parent = children[0];
  EXPECT_EQ(listed(filter), Ids{}) << "it has none";
  filter.parent = "zzzzzzzzzzzz";
  EXPECT_EQ(listed(filter), Ids{}) << "there is no such run";
}

TEST_P(StoreTest, both_ends_of_an_output_are_kept) {
  define("a");
  const std::string id = submit("a");
  const NodeNumber node = enrol();
  const Claim claim = claim_one(node, "a");
  EXPECT_EQ(get(store().output(id)).bytes, 0U);
  EXPECT_TRUE(get(store().append_output(node, claim.attempt_key(), std::string("hello\0 ", 7))));
  EXPECT_TRUE(get(store().append_output(node, claim.attempt_key(), "world\n")));
  EXPECT_EQ(get(store().output(id)).head, std::string("hello\0 world\n", 13));
  const std::string much(kOutputHeadMax + kOutputTailMax + 5000, 'x');
  EXPECT_TRUE(get(store().append_output(node, claim.attempt_key(), much)));
  EXPECT_TRUE(get(store().append_output(node, claim.attempt_key(), "the end")));
  const Output output = get(store().output(id));
  EXPECT_EQ(output.bytes, 13 + much.size() + 7);
  EXPECT_EQ(output.head.size(), kOutputHeadMax);
  EXPECT_TRUE(output.head.starts_with("hello"));
  EXPECT_EQ(output.tail.size(), kOutputTailMax);
  EXPECT_TRUE(output.tail.ends_with("xthe end"));
}

TEST_P(StoreTest, prune_deletes_only_runs_that_ended_long_ago) {
  define("a");
  const std::string old = submit("a", [](NewRun& run) { run.key = "k"; }), open = submit("a");
  NodeNumber node = enrol();
  settle(node, claim_one(node, "a"), Settle::succeeded);
  world().advance(1h);
  node = enrol();
  const std::string recent = submit("a", [](NewRun& run) { run.priority = 9; });
  settle(node, claim_one(node, "a"), Settle::succeeded);
  EXPECT_EQ(get(store().prune(30min, 100)), 1U);
  EXPECT_FALSE(get(store().find(old)));
  EXPECT_EQ(state(open), RunState::queued);
  EXPECT_EQ(state(recent), RunState::succeeded);
  EXPECT_EQ(error_of(store().events(old, 0, 9)), Errc::invalid);
  EXPECT_NE(submit("a", [](NewRun& run) { run.key = "k"; }), old) << "its key is free again";
  EXPECT_EQ(get(store().prune(30min, 100)), 0U);
}

TEST_P(StoreTest, sums_count_runs_events_and_nodes) {
  define("a");
  submit("a");
  submit("a", [](NewRun& run) { run.delay = 1h; });
  const NodeNumber node = enrol();
  settle(node, claim_one(node, "a"), Settle::failed);
  submit("a");
  const Stats stats = get(store().stats());
  EXPECT_EQ(stats.runs.at(RunState::failed), 1U);
  EXPECT_EQ(stats.runs.at(RunState::queued), 2U);
  EXPECT_EQ(stats.ready, 1U);
  EXPECT_EQ(stats.nodes, 1U);
  EXPECT_EQ(stats.events, 6U) << "and one of the node";
}

}  // namespace
}  // namespace stint::store
