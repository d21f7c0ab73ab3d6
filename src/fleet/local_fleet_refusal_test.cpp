// What an engine does when the store permanently refuses something, or the answer to a claim was lost: no run may stay
// `running` while no node carries it.
#include "engine/engine_world.hpp"
#include "fleet/local_fleet.hpp"

namespace stint::fleet {
namespace {

using namespace engine;

/// Outcome and text of all attempts.
Decide always(OutcomeKind kind, std::string text = {}) {
  return [kind, text](const domain::WorkOrder& order) {
    Script script;
    script.outcome.kind = kind;
    script.outcome.text = text;
    script.outcome.message = text;
    script.outcome.conversation = "c" + order.run + text;
    return script;
  };
}

TEST_F(EngineTest, a_result_that_the_store_refuses_ends_its_run_all_the_same) {
  add_agent("a");
  start();
  store_.refuses = [](const std::string& text) { return text.contains("bad"); };
  decide_ = always(OutcomeKind::succeeded, "bad");
  const std::string id = submit("a");
  sim_.advance(5s);
  EXPECT_EQ(look(id).state, RunState::failed);
  EXPECT_TRUE(look(id).error.contains("the run succeeded, but the store refused its result")) << look(id).error;
  EXPECT_EQ(begun_[id], 1U);
  EXPECT_TRUE(engine_->why_unready().empty()) << "one refused text does not make the store unusable";
}

TEST_F(EngineTest, a_retry_that_the_store_refuses_is_lost_and_does_not_begin_again) {
  add_agent("doubts", OnCrash::doubt);
  add_agent("resumes", OnCrash::resume);
  start();
  store_.refuses = [](const std::string& text) { return text.contains("bad"); };
  decide_ = always(OutcomeKind::crashed, "bad");
  const std::string doubts = submit("doubts"), resumes = submit("resumes");
  sim_.advance(1min);
  EXPECT_EQ(look(doubts).state, RunState::in_doubt);
  EXPECT_EQ(look(resumes).state, RunState::failed) << "lost three times";
  EXPECT_EQ(look(resumes).lost, 3U);
  EXPECT_FALSE(look(resumes).error.empty());
}

TEST_F(EngineTest, a_settlement_after_a_sleep_waits_for_the_next_heartbeat) {
  add_agent("a", OnCrash::rerun);
  start();
  std::string silent;
  decide_ = [&](const domain::WorkOrder& order) {
    Script script;
    if (order.run != silent) script.lines = {"one", "two"};
    script.outcome.kind = OutcomeKind::succeeded;
    return script;
  };
  store_.asleep = true;
  silent = submit("a");
  const std::string id = submit("a");
  sim_.advance(10s);
  EXPECT_EQ(look(id).state, RunState::running);
  EXPECT_EQ(alive_, 0) << "the work itself has ended";
  store_.asleep = false;  // the heartbeat has renewed the lease
  sim_.advance(5s);
  EXPECT_EQ(look(id).state, RunState::succeeded);
  EXPECT_EQ(get(store_.output(id)).head, "onetwo") << "and nothing that it said was lost";
  EXPECT_EQ(begun_[id], 1U);
  EXPECT_EQ(look(silent).state, RunState::succeeded);
  EXPECT_EQ(begun_[silent], 1U);
}

TEST_F(EngineTest, output_that_the_store_refuses_is_left_out_alone) {
  add_agent("a");
  start();
  store_.refuses = [](const std::string& text) { return text.contains("bad"); };
  decide_ = [](const domain::WorkOrder&) {
    Script script;
    script.lines = {"good", "bad", "good again"};
    script.outcome.kind = OutcomeKind::succeeded;
    return script;
  };
  const std::string id = submit("a");
  sim_.advance(10s);
  EXPECT_EQ(look(id).state, RunState::succeeded);
  EXPECT_EQ(get(store_.output(id)).head, "goodgood again");
  std::string notes;
  for (const store::Event& event : get(store_.events(id, 0, 100))) notes += event.data;
  EXPECT_TRUE(notes.contains("3 bytes of its output are missing here")) << notes;
}

TEST_F(EngineTest, a_mark_that_the_store_refuses_begins_nothing_and_leaves_nothing_running) {
  add_agent("a", OnCrash::resume);
  start();
  store_.refuses = [](const std::string& text) { return text == "unsafe"; };
  const std::string id = submit("a");
  sim_.advance(1min);
  EXPECT_EQ(begun_[id], 0U);
  EXPECT_NE(look(id).state, RunState::running);
  EXPECT_TRUE(look(id).error.contains("no such mark")) << look(id).error;
}

TEST_F(EngineTest, a_doubt_that_can_not_be_marked_is_not_repeated) {
  add_agent("doubts", OnCrash::doubt);
  add_agent("resumes", OnCrash::resume);
  start();
  decide_ = [](const domain::WorkOrder&) {
    Script script;
    script.outcome.kind = OutcomeKind::in_doubt;
    script.tools = true;
    return script;
  };
  bool begun = false;
  store_.refuses = [&](const std::string& text) { return text == "unsafe" && begun; };
  const std::string doubts = submit("doubts"), resumes = submit("resumes");
  sim_.advance(500ms);
  begun = true;
  sim_.advance(1min);
  EXPECT_EQ(look(doubts).state, RunState::in_doubt);
  EXPECT_TRUE(look(resumes).state == RunState::failed || look(resumes).state == RunState::in_doubt);
  EXPECT_EQ(begun_[doubts] + begun_[resumes], 2U);
}

/// The claim succeeded but its answer was lost: a process owns a run that it does not carry.
TEST_F(EngineTest, a_run_that_is_owned_but_not_carried_is_settled_as_lost) {
  add_agent("again", OnCrash::rerun);
  add_agent("once", OnCrash::doubt);
  store_.claims_garbled = 2;
  start();
  const std::string again = submit("again"), once = submit("once");
  sim_.advance(1s);
  EXPECT_EQ(look(again).state, RunState::running);
  EXPECT_EQ(look(once).state, RunState::running);
  sim_.advance(15s);
  EXPECT_EQ(look(again).state, RunState::succeeded);
  EXPECT_EQ(begun_[again], 1U);
  EXPECT_EQ(look(once).state, RunState::in_doubt) << "whether it began is unknown";
  EXPECT_FALSE(look(once).error.empty());
  EXPECT_EQ(begun_[once], 0U);
}

TEST_F(EngineTest, a_late_answer_does_not_begin_a_run_that_was_settled_as_lost) {
  add_agent("a", OnCrash::rerun);
  store_.claims_garbled = 1;
  start();
  const std::string lost = submit("a");
  sim_.advance(6s);  // it was seen once
  store_.claims_unanswered = 1;
  store_.owned_takes = 8s;
  const std::string other = submit("a");
  sim_.advance(30s);
  EXPECT_EQ(look(lost).state, RunState::succeeded);
  EXPECT_EQ(look(lost).lost, 1U) << "it was settled while the answer was on its way";
  EXPECT_EQ(begun_[lost], 1U);
  EXPECT_EQ(look(other).state, RunState::succeeded);
  EXPECT_EQ(begun_[other], 1U);
}

TEST_F(EngineTest, a_cancel_of_a_run_that_is_not_carried_is_answered) {
  add_agent("a", OnCrash::rerun);
  store_.claims_garbled = 1;
  start();
  const std::string id = submit("a");
  sim_.advance(1s);
  (void)get(store_.cancel(id));
  sim_.advance(15s);
  EXPECT_EQ(look(id).state, RunState::cancelled);
}

TEST_F(EngineTest, a_drain_settles_runs_that_are_owned_but_not_carried) {
  add_agent("a", OnCrash::rerun);
  store_.claims_garbled = 1;
  start();
  const std::string id = submit("a");
  sim_.advance(1s);
  engine_->drain(0s);
  sim_.advance(2s);
  EXPECT_EQ(engine_->phase(), Phase::stopped);
  EXPECT_EQ(look(id).state, RunState::queued);
  EXPECT_TRUE(get(store_.nodes()).empty()) << "it has left";
}

TEST_F(EngineTest, a_reload_that_the_store_refuses_changes_nothing) {
  add_agent("a");
  start();
  AgentRegistry more = registry_;
  more["b"] = more["a"];
  more["b"].entry.name = "b";
  store_.refuses_configure = true;
  std::optional<Result<>> done;
  auto reload = [&]() -> Task<> { done = co_await engine_->reload(more, {.in_store = {{"agent:a", 2}}}); };
  scope_.spawn(reload());
  sim_.advance(1s);
  ASSERT_TRUE(done);
  EXPECT_FALSE(*done);
  EXPECT_FALSE(engine_->registry().contains("b"));
  store_.refuses_configure = false;
  done.reset();
  scope_.spawn(reload());
  sim_.advance(1s);
  EXPECT_TRUE(done && *done);
  EXPECT_TRUE(engine_->registry().contains("b"));
  EXPECT_EQ(get(store_.limits()).front().capacity, 2U);
}

}  // namespace
}  // namespace stint::fleet
