// What every store does with a run, from submit to end.
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

// ---- submit --------------------------------------------------------------------------------------------------------

TEST_P(StoreTest, an_accepted_run_is_stored) {
  define("a");
  NewRun run = fresh("a");
  run.session = "s";
  run.key = "k";
  run.input = R"({"x":"y"})";
  run.deadline = world().now() + 1h;
  ASSERT_TRUE(try_submit(run));
  const store::Run found = look(run.id);
  EXPECT_EQ(found.id, run.id);
  EXPECT_EQ(found.agent, "a");
  EXPECT_EQ(found.session, "s");
  EXPECT_EQ(found.key, "k");
  EXPECT_EQ(found.input, run.input);
  EXPECT_EQ(found.deadline, run.deadline);
  EXPECT_EQ(found.state, RunState::queued);
  EXPECT_EQ(found.hold, Hold::none);
  EXPECT_EQ(found.attempt, 0U);
  EXPECT_EQ(causes(run.id), Ids{"enqueued"});
}

TEST_P(StoreTest, a_submit_may_be_repeated) {
  define("a");
  const NewRun run = fresh("a");
  EXPECT_TRUE(try_submit(run)->created);
  EXPECT_FALSE(try_submit(run)->created) << "the answer was lost";
  EXPECT_EQ(get(store().list({})).size(), 1U);
}

TEST_P(StoreTest, a_key_names_one_run_of_its_agent) {
  define("a");
  define("b");
  const auto with_key = [](NewRun& run) { run.key = "k"; };
  const std::string first = submit("a", with_key);
  NewRun twin = fresh("a");
  twin.key = "k";
  const auto again = try_submit(twin);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id, first);
  EXPECT_FALSE(again->created);
  EXPECT_NE(submit("b", with_key), first);
}

TEST_P(StoreTest, session_and_key_of_the_greatest_length_are_stored) {
  define("a");
  std::uint64_t state = 1;
  const auto noise = [&](std::size_t bytes) {  // incompressible
    std::string text;
    while (text.size() < bytes) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      text += static_cast<char>('!' + (state >> 33U) % 94);
    }
    return text;
  };
  NewRun run = fresh("a");
  run.session = noise(domain::kSessionBytesMax);
  run.key = noise(domain::kKeyBytesMax);
  ASSERT_TRUE(try_submit(run));
  const auto found = get(store().with_key("a", run.key));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().session, run.session);
}

TEST_P(StoreTest, a_full_queue_refuses_new_runs_and_accepts_repeats) {
  define("a", [](AgentEntry& agent) { agent.queued_max = 2; });
  const std::string first = submit("a", [](NewRun& run) { run.key = "k"; });
  submit("a", [](NewRun& run) { run.delay = 1h; });
  EXPECT_EQ(try_submit(fresh("a")).error(), Errc::full) << "delayed runs count";
  NewRun twin = fresh("a");
  twin.key = "k";
  EXPECT_EQ(try_submit(twin)->id, first);
  claim_one(enrol(), "a");
  EXPECT_TRUE(try_submit(fresh("a")));
}

TEST_P(StoreTest, invalid_runs_are_refused) {
  define("a");
  EXPECT_EQ(try_submit(fresh("unknown")).error(), Errc::invalid);
  NewRun run = fresh("a");
  run.id = "short";
  EXPECT_EQ(try_submit(run).error(), Errc::invalid);
  run = fresh("a");
  run.priority = domain::kPriorityMax + 1;
  EXPECT_EQ(try_submit(run).error(), Errc::invalid);
  EXPECT_TRUE(get(store().list({})).empty());
}

TEST_P(StoreTest, each_run_of_a_batch_has_its_answer) {
  define("a");
  std::vector<NewRun> batch = {fresh("a"), fresh("unknown"), fresh("a")};
  const auto answers = get(store().enqueue(batch));
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0]->id, batch[0].id);
  EXPECT_EQ(answers[1].error(), Errc::invalid);
  EXPECT_EQ(answers[2]->id, batch[2].id);
  EXPECT_EQ(get(store().list({})).size(), 2U);
}

TEST_P(StoreTest, a_child_needs_a_running_parent_and_a_session_of_its_own) {
  define("a");
  const std::string parent = submit("a", [](NewRun& run) { run.session = "s"; });
  NewRun child = fresh("a");
  child.parent = parent;
  EXPECT_EQ(try_submit(child).error(), Errc::conflict) << "the parent is not running yet";
  const NodeNumber node = enrol();
  const Claim claim = claim_one(node, "a");
  NewRun same_session = child;
  same_session.session = "s";
  EXPECT_EQ(try_submit(same_session).error(), Errc::invalid) << "it would wait for itself";
  EXPECT_TRUE(try_submit(child));
  EXPECT_EQ(look(child.id).parent, parent);
  settle(node, claim, Settle::succeeded);
  child.id = fresh("a").id;
  EXPECT_EQ(try_submit(child).error(), Errc::conflict);
}

// ---- claim ---------------------------------------------------------------------------------------------------------

TEST_P(StoreTest, runs_are_claimed_in_order_with_priority_and_age) {
  define("a");
  const std::string first = submit("a"), second = submit("a");
  const std::string urgent = submit("a", [](NewRun& run) { run.priority = 1; });
  const std::string low = submit("a", [](NewRun& run) { run.priority = -1; });
  world().advance(11min);
  const std::string late = submit("a"), late_urgent = submit("a", [](NewRun& run) { run.priority = 1; });
  EXPECT_EQ(claimed_ids(enrol(), "a", 10), (Ids{urgent, first, second, late_urgent, low, late}));
}

TEST_P(StoreTest, a_claim_has_a_fence_and_the_input) {
  define("a");
  const std::string id = submit("a", [](NewRun& run) { run.input = R"({"p":1})"; });
  const NodeNumber node = enrol();
  const Claim first = claim_one(node, "a");
  EXPECT_EQ(first.id, id);
  EXPECT_EQ(first.input, R"({"p":1})");
  EXPECT_EQ(first.attempt, 1U);
  EXPECT_EQ(state(id), RunState::running);
  EXPECT_EQ(look(id).node, node);
  EXPECT_TRUE(claim(node, "a").empty()) << "already claimed";
  EXPECT_EQ(settle(node, first, Settle::hand_back), RunState::queued);
  const Claim second = claim_one(node, "a");
  EXPECT_GT(second.fence, first.fence);
  EXPECT_EQ(second.attempt, 1U) << "a hand-back does not count as an attempt";
}

TEST_P(StoreTest, a_delayed_run_waits_for_its_time) {
  define("a");
  const std::string id = submit("a", [](NewRun& run) { run.delay = 1min; });
  const NodeNumber node = enrol();
  EXPECT_EQ(hold(id), Hold::delay);
  EXPECT_EQ(tick().woken, 0U);
  EXPECT_TRUE(claim(node, "a").empty());
  world().advance(61s);
  EXPECT_EQ(tick().woken, 1U);
  EXPECT_EQ(hold(id), Hold::none);
  EXPECT_EQ(claimed_ids(enrol(), "a", 1), Ids{id});
}

TEST_P(StoreTest, owned_lists_claims_whose_answer_was_lost) {
  define("a");
  submit("a", [](NewRun& run) { run.input = "1"; });
  submit("a");
  const NodeNumber node = enrol();
  EXPECT_TRUE(get(store().owned(node)).empty());
  const auto claims = claim(node, "a", 2);
  const auto owned = get(store().owned(node));
  ASSERT_EQ(owned.size(), 2U);
  EXPECT_EQ(owned[0].run, claims[0].run);
  EXPECT_EQ(owned[0].fence, claims[0].fence);
  EXPECT_EQ(owned[0].input, "1");
}

TEST_P(StoreTest, a_draining_node_claims_nothing_and_leaves_when_it_owns_no_run) {
  define("a");
  submit("a");
  submit("a");
  const NodeNumber node = enrol();
  const Claim claim = claim_one(node, "a");
  get(store().drain(node));
  EXPECT_TRUE(this->claim(node, "a").empty());
  EXPECT_TRUE(get(store().beat(node)).alive);
  EXPECT_EQ(error_of(store().leave(node)), Errc::conflict);
  EXPECT_EQ(settle(node, claim, Settle::hand_back), RunState::queued);
  get(store().leave(node));
  EXPECT_FALSE(get(store().beat(node)).alive);
}

// ---- the end of an attempt -----------------------------------------------------------------------------------------

TEST_P(StoreTest, each_end_of_an_attempt_follows_the_rule) {
  define("a", [](AgentEntry& agent) {
    agent.attempts_max = 2;
    agent.lost_max = 2;
    agent.queued_max = 10'000;
  });
  define("expiry");
  for (const Settle how : domain::kSettles) {
    if (how == Settle::lost) continue;  // done by the store itself: below
    for (const Stop stop : {Stop::none, Stop::cancelled}) {
      for (const bool unsafe : {false, true}) {
        for (const std::uint32_t attempt : {1U, 2U}) {
          SCOPED_TRACE(testing::Message()
                       << to_string(how) << ' ' << to_string(stop) << " unsafe " << unsafe << " attempt " << attempt);
          const NodeNumber node = enrol();
          const std::string id = submit("a");
          Claim claim = claim_one(node, "a");
          if (attempt == 2) {
            EXPECT_EQ(settle(node, claim, Settle::retry), RunState::queued);
            tick();
            claim = claim_one(node, "a");
          }
          if (unsafe) EXPECT_TRUE(get(store().mark(node, claim.attempt_key(), true)));
          if (stop == Stop::cancelled) get(store().cancel(id));
          domain::SettleFacts facts;
          facts.settle = how;
          facts.stop = stop;
          facts.unsafe = unsafe;
          facts.on_crash = OnCrash::rerun;
          facts.attempt = attempt;
          facts.attempts_max = 2;
          facts.lost_max = 2;
          const RunState wanted = domain::after_settle(facts);
          EXPECT_EQ(settle(node, claim, how), wanted);
          EXPECT_EQ(state(id), wanted);
          EXPECT_EQ(look(id).finished_at.has_value(), domain::is_finished(wanted));
          if (wanted == RunState::queued || wanted == RunState::parked) get(store().cancel(id));
        }
      }
    }
  }
}

TEST_P(StoreTest, a_former_owner_changes_nothing) {
  define("a");
  const std::string id = submit("a");
  const NodeNumber before = enrol(), after = enrol();
  const Claim old = claim_one(before, "a");
  settle(before, old, Settle::hand_back);
  const Claim now = claim_one(after, "a");
  EXPECT_EQ(settle(before, old, Settle::succeeded), std::nullopt);
  EXPECT_EQ(settle(after, old, Settle::succeeded), std::nullopt) << "the fence of another claim";
  EXPECT_EQ(settle(before, now, Settle::succeeded), std::nullopt) << "the claim of another node";
  EXPECT_FALSE(get(store().mark(before, old.attempt_key(), true)));
  EXPECT_FALSE(get(store().note(before, old.attempt_key(), "x", "{}")));
  EXPECT_FALSE(get(store().append_output(before, old.attempt_key(), "x")));
  EXPECT_EQ(state(id), RunState::running);
  EXPECT_FALSE(look(id).unsafe);
  EXPECT_EQ(settle(after, now, Settle::succeeded), RunState::succeeded);
  EXPECT_EQ(settle(after, now, Settle::failed), std::nullopt) << "it has ended";
  EXPECT_EQ(state(id), RunState::succeeded);
}

TEST_P(StoreTest, some_settlements_of_a_batch_may_be_stale) {
  define("a");
  submit("a");
  submit("a");
  const NodeNumber node = enrol();
  const auto claims = claim(node, "a", 2);
  std::vector<Settlement> ends(3);
  for (std::size_t i = 0; i < 2; ++i) {
    ends[i].attempt = claims[i].attempt_key();
    ends[i].settle = i == 0 ? Settle::succeeded : Settle::failed;
  }
  ends[2].attempt = {claims[0].run, Fence{claims[0].fence.value + 1}};
  const auto states = get(store().settle(node, ends));
  EXPECT_EQ(states, (std::vector<std::optional<RunState>>{RunState::succeeded, RunState::failed, std::nullopt}));
}

TEST_P(StoreTest, result_and_error_are_kept) {
  define("a");
  const std::string id = submit("a");
  const NodeNumber node = enrol();
  settle(node, claim_one(node, "a"), Settle::retry, [](Settlement& end) { end.error = "first"; });
  EXPECT_EQ(look(id).error, "first");
  world().advance(9s);
  tick();
  settle(node, claim_one(node, "a"), Settle::succeeded, [](Settlement& end) { end.result = R"({"text":"ü"})"; });
  EXPECT_EQ(look(id).result, R"({"text":"ü"})");
  EXPECT_EQ(look(id).error, "") << "it succeeded; earlier errors are in its events";
  const auto events = get(store().events(id, 0, 100));
  EXPECT_EQ(events[2].error, "first");
}

TEST_P(StoreTest, between_attempts_a_run_waits_for_its_back_off) {
  define("a", [](AgentEntry& agent) { agent.attempts_max = 9; });
  const std::string id = submit("a");
  const NodeNumber node = enrol();
  for (const Duration wait : {Duration(0ms), Duration(1s), Duration(5s)}) {
    const WallTime asked = world().now();
    const auto end =
        settle(node, claim_one(node, "a"), Settle::retry, [&](Settlement& end) { end.retry_after = wait; });
    EXPECT_EQ(end, RunState::queued);
    const store::Run run = look(id);
    EXPECT_EQ(run.hold, Hold::backoff);
    ASSERT_TRUE(run.not_before);
    EXPECT_GE(*run.not_before, asked + wait);
    EXPECT_LE(*run.not_before, world().now() + wait);
    if (wait > 0s) EXPECT_TRUE(claim(node, "a").empty());
    world().advance(wait + 1ms);
    EXPECT_EQ(tick().woken, 1U);
  }
}

TEST_P(StoreTest, a_run_without_time_for_a_retry_ends_with_its_last_error) {
  define("a");
  const std::string id = submit("a", [](NewRun& run) { run.budget = 10s; });
  const NodeNumber node = enrol();
  const auto end = settle(node, claim_one(node, "a"), Settle::retry, [](Settlement& settlement) {
    settlement.retry_after = 11s;
    settlement.error = "overloaded";
  });
  EXPECT_EQ(end, RunState::expired);
  EXPECT_EQ(look(id).error, "overloaded");
}

}  // namespace
}  // namespace stint::store
