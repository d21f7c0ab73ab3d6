// What every store does for a fleet: workers that die, limits, events, looking.
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

// ---- workers -------------------------------------------------------------------------------------------------------

TEST_P(StoreTest, the_runs_of_a_dead_worker_go_back) {
  define("a");
  const std::string rerun = submit("a"), doubt = submit("a", [](NewRun& run) { run.on_crash = OnCrash::doubt; });
  const std::string unsafe = submit("a"), cancelled = submit("a");
  const WorkerNumber dead = enrol();
  const auto claims = claim(dead, "a", 4);
  get(store().mark(dead, claims[2].run, claims[2].fence, true));
  get(store().cancel(cancelled));
  world().kill(dead);
  const WorkerNumber next = enrol();
  const Ticked ticked = tick();
  EXPECT_EQ(ticked.buried, std::vector<WorkerNumber>{dead});
  EXPECT_EQ(ticked.lost, 4U);
  EXPECT_EQ(state(rerun), RunState::queued);
  EXPECT_EQ(look(rerun).attempt, 0U) << "a loss is no attempt";
  EXPECT_EQ(look(rerun).lost, 1U);
  EXPECT_EQ(state(doubt), RunState::in_doubt);
  EXPECT_EQ(state(unsafe), RunState::in_doubt);
  EXPECT_EQ(state(cancelled), RunState::cancelled);
  EXPECT_EQ(claimed_ids(next, "a", 9), Ids{rerun});
  EXPECT_TRUE(tick().buried.empty()) << "once";
}

TEST_P(StoreTest, a_zombie_learns_that_it_is_one) {
  define("a");
  const std::string id = submit("a");
  const WorkerNumber zombie = enrol();
  const Claim claim = claim_one(zombie, "a");
  world().kill(zombie);
  tick();
  EXPECT_FALSE(get(store().beat(zombie)).alive);
  EXPECT_EQ(error_of(store().claim(zombie, "a", 1)), Errc::closed);
  EXPECT_EQ(settle(zombie, claim, Settle::succeeded), std::nullopt);
  EXPECT_EQ(state(id), RunState::queued);
}

TEST_P(StoreTest, who_beats_lives) {
  define("a");
  submit("a");
  const WorkerNumber worker = enrol();
  const Claim claim = claim_one(worker, "a");
  for (int i = 0; i < 10; ++i) {
    world().advance(3s);
    EXPECT_TRUE(get(store().beat(worker)).alive);
    EXPECT_TRUE(tick().buried.empty());
  }
  EXPECT_EQ(settle(worker, claim, Settle::succeeded), RunState::succeeded);
  EXPECT_FALSE(get(store().beat(worker + 1000)).alive) << "who never enrolled";
}

TEST_P(StoreTest, a_run_that_kills_its_workers_is_not_tried_for_ever) {
  define("a", [](AgentEntry& agent) { agent.lost_max = 3; });
  const std::string id = submit("a");
  for (int i = 0; i < 3; ++i) {
    const WorkerNumber worker = enrol();
    EXPECT_EQ(claimed_ids(worker, "a", 1), Ids{id});
    world().kill(worker);
    tick();
    EXPECT_EQ(look(id).error.empty(), i < 2) << "as long as it goes on there is nothing to explain";
  }
  EXPECT_EQ(state(id), RunState::failed);
  EXPECT_TRUE(look(id).error.contains("lost 3 times")) << look(id).error;
}

TEST_P(StoreTest, a_run_in_doubt_says_that_its_process_was_lost) {
  define("a");
  const std::string id = submit("a", [](NewRun& run) { run.on_crash = domain::OnCrash::doubt; });
  const WorkerNumber worker = enrol();
  claim_one(worker, "a");
  world().kill(worker);
  tick();
  EXPECT_EQ(state(id), RunState::in_doubt);
  EXPECT_TRUE(look(id).error.contains("was lost")) << look(id).error;
}

TEST_P(StoreTest, workers_are_named_with_what_they_carry_and_when_they_beat) {
  EXPECT_TRUE(get(store().workers()).empty());
  define("a");
  for (int i = 0; i < 3; ++i) submit("a");
  const WorkerNumber one = get(store().enrol("host-1")), two = get(store().enrol("host-2"));
  const auto claims = claim(one, "a", 2);
  world().advance(4s);
  get(store().beat(two));
  get(store().drain(two));
  world().advance(1s);
  auto workers = get(store().workers());
  ASSERT_EQ(workers.size(), 2U);
  EXPECT_EQ(workers[0].number, one);
  EXPECT_EQ(workers[0].label, "host-1");
  EXPECT_EQ(workers[0].state, "live");
  EXPECT_EQ(workers[0].runs, 2U);
  EXPECT_EQ(workers[0].last_beat_ago, Duration(5s));
  EXPECT_EQ(workers[1].label, "host-2");
  EXPECT_EQ(workers[1].state, "draining");
  EXPECT_EQ(workers[1].runs, 0U);
  EXPECT_EQ(workers[1].last_beat_ago, Duration(1s));
  settle(one, claims[0], Settle::succeeded);
  get(store().leave(two));
  get(store().beat(one));
  workers = get(store().workers());
  ASSERT_EQ(workers.size(), 1U);
  EXPECT_EQ(workers[0].runs, 1U);
  EXPECT_EQ(workers[0].last_beat_ago, Duration::zero());
  world().kill(one);
  tick();
  EXPECT_TRUE(get(store().workers()).empty()) << "who is buried is not there";
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
  const WorkerNumber worker = enrol();
  EXPECT_EQ(claim(worker, "heavy", 9).size(), 1U) << "the model is full";
  EXPECT_EQ(claim(worker, "light", 9).size(), 2U);
  EXPECT_EQ(claim(worker, "light", 9).size(), 0U);
  const auto owned = get(store().owned(worker));
  settle(worker, owned.back(), Settle::succeeded);
  EXPECT_EQ(claim(worker, "light", 9).size(), 1U) << "an end makes room";
  get(store().resize("gpu", 2));
  settle(worker, get(store().owned(worker)).back(), Settle::succeeded);
  EXPECT_EQ(claim(worker, "light", 9).size(), 0U) << "three are held of two";
  get(store().resize("gpu", std::nullopt));
  EXPECT_EQ(claim(worker, "light", 2).size(), 2U) << "no cap any more";
  EXPECT_EQ(error_of(store().resize("gpu", 0)), Errc::invalid);
}

TEST_P(StoreTest, a_limit_is_named_once_and_weighs_something) {
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
  const WorkerNumber worker = enrol();
  EXPECT_EQ(claim(worker, "a", 1).size(), 1U);
  define("a", [](AgentEntry& agent) { agent.limits = {{"x", 2}}; });
  EXPECT_TRUE(claim(worker, "a").empty()) << "one unit is held, two are wanted";
  settle(worker, get(store().owned(worker)).front(), Settle::succeeded);
  EXPECT_EQ(claim(worker, "a", 9).size(), 1U);
  for (const LimitState& limit : get(store().limits())) {
    EXPECT_EQ(limit.name, "x");
    EXPECT_EQ(limit.units, 2);
    EXPECT_EQ(limit.runs, 1);
  }
}

TEST_P(StoreTest, a_paused_limit_lets_nobody_through_then_one_probe_then_more) {
  define("a", [](AgentEntry& agent) { agent.limits = {{"account:x", 1}}; });
  for (int i = 0; i < 8; ++i) submit("a");
  const WorkerNumber worker = enrol();
  get(store().pause("account:x", 5s));
  EXPECT_TRUE(claim(worker, "a").empty());
  world().advance(6s);
  EXPECT_EQ(claim(worker, "a", 9).size(), 1U) << "the probe";
  EXPECT_TRUE(claim(worker, "a", 9).empty());
  settle(worker, get(store().owned(worker)).front(), Settle::succeeded);
  EXPECT_EQ(claim(worker, "a", 9).size(), 2U) << "then two";
  settle(worker, get(store().owned(worker)).front(), Settle::succeeded);
  EXPECT_EQ(claim(worker, "a", 9).size(), 3U) << "then four";
  get(store().pause("account:x", std::nullopt));
  EXPECT_TRUE(get(store().limits()).front().paused);
  get(store().beat(worker));
  world().advance(10s);
  EXPECT_TRUE(claim(worker, "a").empty()) << "until somebody resumes it";
  EXPECT_EQ(get(store().resume("account:x")), 0U);
  EXPECT_FALSE(get(store().limits()).front().paused);
}

TEST_P(StoreTest, what_a_person_paused_and_resumed_goes_on_at_full_width) {
  define("a", [](AgentEntry& agent) { agent.limits = {{"agent:a", 1}}; });
  for (int i = 0; i < 8; ++i) submit("a");
  const WorkerNumber worker = enrol();
  get(store().pause("agent:a", std::nullopt));
  EXPECT_TRUE(claim(worker, "a", 9).empty());
  get(store().resume("agent:a"));
  EXPECT_EQ(claim(worker, "a", 9).size(), 8U);
}

TEST_P(StoreTest, a_park_pauses_its_account_and_a_resume_wakes_what_was_parked) {
  define("a", [](AgentEntry& agent) { agent.limits = {{"account:x", 1}}; });
  define("b", [](AgentEntry& agent) { agent.limits = {{"account:x", 1}}; });
  define("c");
  const std::string parked = submit("a"), held_back = submit("b"), free = submit("c");
  const WorkerNumber worker = enrol();
  settle(worker, claim_one(worker, "a"), Settle::park, [](Settlement& end) { end.park_on = "account:x"; });
  EXPECT_TRUE(claim(worker, "b").empty()) << "the whole account waits";
  EXPECT_EQ(state(held_back), RunState::queued);
  EXPECT_EQ(claimed_ids(worker, "c", 1), Ids{free});
  EXPECT_EQ(get(store().resume("account:x")), 1U);
  EXPECT_EQ(claimed_ids(worker, "a", 1), Ids{parked}) << "the first of them is the probe";
  EXPECT_TRUE(claim(worker, "b").empty());
  EXPECT_EQ(get(store().why(held_back)).front().reason, "probe");
  EXPECT_EQ(get(store().why(held_back)).front().detail, "account:x: 1 at a time");
}

TEST_P(StoreTest, a_heavy_request_is_not_starved_and_starves_nobody) {
  define("light", [](AgentEntry& agent) { agent.limits = {{"gpu", 1}}; });
  define("heavy", [](AgentEntry& agent) { agent.limits = {{"gpu", 4}}; });
  get(store().resize("gpu", 4));
  for (int i = 0; i < 60; ++i) {
    submit("light");
    submit("heavy");
  }
  const WorkerNumber worker = enrol();
  std::map<std::string, int> served;
  for (int round = 0; round < 60; ++round) {
    for (const char* const agent : {"light", "heavy"})
      served[agent] += static_cast<int>(claim(worker, agent, 9).size());
    const auto owned = get(store().owned(worker));
    if (!owned.empty()) settle(worker, owned.front(), Settle::succeeded);  // one at a time: it never empties by itself
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
  const WorkerNumber worker = enrol();
  const Claim light = claim_one(worker, "light");
  EXPECT_TRUE(claim(worker, "heavy").empty()) << "it takes the turn";
  EXPECT_TRUE(claim(worker, "light").empty()) << "which the light one respects";
  settle(worker, light, Settle::succeeded);
  const Claim heavy = claim_one(worker, "heavy");
  EXPECT_TRUE(claim(worker, "heavy").empty()) << "and does not take it again at once";
  settle(worker, heavy, Settle::succeeded);
  EXPECT_EQ(claim(worker, "light").size(), 1U);
}

// ---- events --------------------------------------------------------------------------------------------------------

TEST_P(StoreTest, events_tell_a_run_without_gaps) {
  define("a");
  const std::string id = submit("a");
  const WorkerNumber worker = enrol();
  Claim claim = claim_one(worker, "a");
  EXPECT_TRUE(get(store().note(worker, claim.run, claim.fence, "tool", R"({"n":1})")));
  settle(worker, claim, Settle::hand_back);
  claim = claim_one(worker, "a");
  settle(worker, claim, Settle::succeeded);
  const auto events = get(store().events(id, 0, 100));
  ASSERT_EQ(causes(id), (Ids{"enqueued", "claimed", "tool", "hand_back", "claimed", "succeeded"}));
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].seq, static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(events[i].run, id);
  }
  EXPECT_EQ(events[2].data, R"({"n":1})");
  EXPECT_EQ(events[1].worker, worker);
  EXPECT_EQ(events[3].worker, worker) << "who had it";
  EXPECT_LT(events[1].fence, events[4].fence);
  EXPECT_EQ(get(store().events(id, 4, 1)).front().seq, 5);
  EXPECT_EQ(error_of(store().events("zzzzzzzzzzzz", 0, 1)), Errc::invalid);
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
  EXPECT_TRUE(get(store().feed(now.cursor, 10)).events.empty()) << "what was before is not told";
  const std::string second = submit("a");
  const auto after = get(store().feed(now.cursor, 10));
  ASSERT_EQ(after.events.size(), 1U);
  EXPECT_EQ(after.events.front().run, second);
}

TEST_P(StoreTest, the_feed_has_every_event_once_whatever_the_pages) {
  define("a");
  std::map<std::string, std::int64_t> wanted;
  const WorkerNumber worker = enrol();
  for (int i = 0; i < 7; ++i) {
    submit("a");
    const Claim claim = claim_one(worker, "a");
    settle(worker, claim, Settle::succeeded);
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
    ASSERT_EQ(page.events.size(), 1U) << "it goes on where it ended";
    EXPECT_EQ(page.events[0].run, late);
    get(store().cancel(late));
    wanted[late] = 2;
  }
  const FeedPage whole = get(store().feed("", 100));
  for (std::size_t i = 0; i < whole.events.size(); ++i) {
    const FeedPage rest = get(store().feed(whole.events[i].cursor, 100));
    ASSERT_EQ(rest.events.size(), whole.events.size() - i - 1) << "from any of them it goes on with the next";
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
  const WorkerNumber worker = enrol();
  submit("a");
  settle(worker, claim_one(worker, "a"), Settle::succeeded);
  const std::string now = get(store().feed(std::string(kFeedNow), 10)).cursor;
  const FeedPage page = get(store().feed("", 100));
  std::string ahead = page.cursor;  // a number, or two of them: the first one counts
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

// ---- looking -------------------------------------------------------------------------------------------------------

TEST_P(StoreTest, every_wait_has_a_reason) {
  define("a", [](AgentEntry& agent) { agent.limits = {{"gpu", 1}}; });
  get(store().resize("gpu", 1));
  const WorkerNumber worker = enrol();
  const auto in_session = [](NewRun& run) { run.session = "s"; };
  const std::string runs = submit("a", in_session), behind = submit("a", in_session);
  claim_one(worker, "a");
  EXPECT_EQ(reasons(runs), Ids{}) << "it runs";
  EXPECT_EQ(reasons(behind), Ids{"session"});
  EXPECT_NE(get(store().why(behind)).front().detail.find(runs), std::string::npos);
  const std::string first = submit("a"), second = submit("a");
  EXPECT_EQ(reasons(first), (Ids{"limit", "place"}));
  EXPECT_EQ(get(store().why(first)).front().detail, "gpu: 1 of 1 held");
  EXPECT_EQ(get(store().why(second)).back().detail, "2");
  const std::string later = submit("a", [](NewRun& run) { run.delay = 1h; });
  EXPECT_EQ(reasons(later), Ids{"delay"});
  EXPECT_EQ(get(store().why(later)).front().until, look(later).not_before);
  get(store().pause("gpu", std::nullopt));
  EXPECT_EQ(reasons(first), (Ids{"paused", "place"}));
  EXPECT_EQ(error_of(store().why("zzzzzzzzzzzz")), Errc::invalid);
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
  const WorkerNumber worker = enrol();
  submit("a", [](NewRun& run) { run.input = "{}"; });
  const Claim claim = claim_one(worker, "a");
  Settlement end;
  end.run = claim.run;
  end.fence = claim.fence;
  end.settle = Settle::succeeded;
  end.result = "[1]";
  get(store().settle(worker, {end}));
  Filter filter;
  EXPECT_EQ(get(store().list(filter)).front().input, "");
  EXPECT_EQ(get(store().list(filter)).front().result, "");
  filter.texts = true;
  EXPECT_EQ(get(store().list(filter)).front().input, "{}");
  EXPECT_EQ(get(store().list(filter)).front().result, "[1]");
}

TEST_P(StoreTest, a_list_takes_no_more_of_a_long_text_than_it_shows) {
  define("a");
  const WorkerNumber worker = enrol();
  const std::string big(100'000, 'x');
  const std::string id =
      submit("a", [&](NewRun& run) { run.input = R"({"prompt":")" + big + R"(\u0000","title":"t ü"})"; });
  const Claim claim = claim_one(worker, "a");
  Settlement end;
  end.run = claim.run;
  end.fence = claim.fence;
  end.settle = Settle::succeeded;
  end.result = R"({"usage":{"out":3},"text":")" + big + "\"}";
  get(store().settle(worker, {end}));
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
  EXPECT_EQ(look(id).result, end.result) << "one run is read whole";
}

TEST_P(StoreTest, queues_count_all_that_is_queued_and_know_their_bound) {
  define("a", [](AgentEntry& agent) { agent.queued_max = 3; });
  define("b");
  const WorkerNumber worker = enrol();
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
  claim_one(worker, "a");
  EXPECT_EQ(sizes().at("a").first, 2U) << "what runs is not queued";
}

TEST_P(StoreTest, a_list_of_states_and_one_of_children_have_all_of_them) {
  live();
  submit("a", [](NewRun& run) { run.session = "t"; });
  submit("b", [](NewRun& run) { run.session = "t"; });
  const WorkerNumber worker = enrol();
  const Claim parent = claim_one(worker, "c");
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
  const WorkerNumber worker = enrol();
  const Claim claim = claim_one(worker, "a");
  EXPECT_EQ(get(store().output(id)).bytes, 0U);
  EXPECT_TRUE(get(store().append_output(worker, claim.run, claim.fence, std::string("hello\0 ", 7))));
  EXPECT_TRUE(get(store().append_output(worker, claim.run, claim.fence, "world\n")));
  EXPECT_EQ(get(store().output(id)).head, std::string("hello\0 world\n", 13));
  const std::string much(kOutputHeadMax + kOutputTailMax + 5000, 'x');
  EXPECT_TRUE(get(store().append_output(worker, claim.run, claim.fence, much)));
  EXPECT_TRUE(get(store().append_output(worker, claim.run, claim.fence, "the end")));
  const Output output = get(store().output(id));
  EXPECT_EQ(output.bytes, 13 + much.size() + 7);
  EXPECT_EQ(output.head.size(), kOutputHeadMax);
  EXPECT_TRUE(output.head.starts_with("hello"));
  EXPECT_EQ(output.tail.size(), kOutputTailMax);
  EXPECT_TRUE(output.tail.ends_with("xthe end"));
}

TEST_P(StoreTest, what_ended_long_ago_is_forgotten_and_nothing_else) {
  define("a");
  const std::string old = submit("a", [](NewRun& run) { run.key = "k"; }), open = submit("a");
  WorkerNumber worker = enrol();
  settle(worker, claim_one(worker, "a"), Settle::succeeded);
  world().advance(1h);
  worker = enrol();
  const std::string recent = submit("a", [](NewRun& run) { run.priority = 9; });
  settle(worker, claim_one(worker, "a"), Settle::succeeded);
  EXPECT_EQ(get(store().prune(30min, 100)), 1U);
  EXPECT_FALSE(get(store().find(old)));
  EXPECT_EQ(state(open), RunState::queued);
  EXPECT_EQ(state(recent), RunState::succeeded);
  EXPECT_EQ(error_of(store().events(old, 0, 9)), Errc::invalid);
  EXPECT_NE(submit("a", [](NewRun& run) { run.key = "k"; }), old) << "its key is free again";
  EXPECT_EQ(get(store().prune(30min, 100)), 0U);
}

TEST_P(StoreTest, sums_say_what_there_is) {
  define("a");
  submit("a");
  submit("a", [](NewRun& run) { run.delay = 1h; });
  const WorkerNumber worker = enrol();
  settle(worker, claim_one(worker, "a"), Settle::failed);
  submit("a");
  const Stats stats = get(store().stats());
  EXPECT_EQ(stats.runs.at(RunState::failed), 1U);
  EXPECT_EQ(stats.runs.at(RunState::queued), 2U);
  EXPECT_EQ(stats.ready, 1U);
  EXPECT_EQ(stats.workers, 1U);
  EXPECT_EQ(stats.events, 5U);
}

// ---- waiting for work ----------------------------------------------------------------------------------------------

TEST_P(StoreTest, a_wait_for_work_ends_when_there_is_some) {
  define("a");
  get(store().wait(0, 50ms));  // whatever the first one has to set up
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

TEST_P(StoreTest, what_was_submitted_before_the_wait_is_not_slept_through) {
  define("a");
  const std::uint64_t seen = get(store().wait(0, 1ms));
  submit("a");
  const TimePoint begin = world().reactor().now();
  get(store().wait(seen, 20s));
  EXPECT_LT(world().reactor().now() - begin, 8s);
}

TEST_P(StoreTest, a_wait_for_work_ends_by_itself) {
  const std::uint64_t seen = get(store().wait(0, 1ms));
  get(store().wait(seen, 20ms));
}

}  // namespace
}  // namespace stint::store
