// What a run may use up, over all of its attempts.
#include "engine/engine_world.hpp"
#include "engine/local_fleet.hpp"

namespace stint::engine {
namespace {

TEST_F(EngineTest, time_that_is_used_up_ends_the_work) {
  add_agent("a", OnCrash::rerun);
  decide_ = [](const domain::WorkOrder&) { return Script{.takes = 1h, .outcome = {}}; };
  start();
  const std::string id = submit("a", 5s);
  sim_.advance(4900ms);
  EXPECT_EQ(look(id).state, RunState::running);
  sim_.advance(200ms);
  EXPECT_EQ(look(id).state, RunState::expired) << "not at the next beat: then";
  EXPECT_EQ(alive_, 0);
}

TEST_F(EngineTest, tokens_that_are_used_up_end_the_work) {
  add_agent("a", OnCrash::rerun);
  book_["a"].budget.tokens = 100;
  decide_ = [](const domain::WorkOrder&) { return Script{.takes = 10s, .outcome = {}, .uses = 101}; };
  start();
  const std::string id = submit("a");
  sim_.advance(11s);
  EXPECT_EQ(look(id).state, RunState::expired);
  EXPECT_NE(look(id).error.find("tokens"), std::string::npos) << look(id).error;
  EXPECT_EQ(look(id).tokens, 101);
  EXPECT_EQ(alive_, 0);
}

TEST_F(EngineTest, attempts_share_the_tokens_of_their_run) {
  add_agent("a", OnCrash::rerun);
  book_["a"].budget.tokens = 100;
  book_["a"].budget.attempts = 10;
  decide_ = [](const domain::WorkOrder&) {
    Script script{.takes = 1s, .outcome = {}, .uses = 40};
    script.outcome.kind = OutcomeKind::crashed;
    return script;
  };
  start();
  const std::string id = submit("a");
  sim_.advance(5min);
  EXPECT_EQ(look(id).state, RunState::expired);
  EXPECT_EQ(begun_[id], 3U) << "the third goes over it";
  EXPECT_EQ(look(id).tokens, 120);
}

TEST_F(EngineTest, children_get_what_is_left_of_their_parents_budget) {
  add_agent("a", OnCrash::rerun);
  book_["a"].budget.tokens = 100;
  decide_ = [](const domain::WorkOrder& order) {
    Script script{.takes = order.input.budget.tokens ? Duration(1s) : Duration(1h), .outcome = {}, .uses = 40};
    script.outcome.kind = OutcomeKind::succeeded;
    return script;
  };
  start();
  LocalFleet fleet({sim_, store_, scribe_, ambient_, [this]() -> const Book& { return book_; }, engine_.get()}, {});
  const std::string parent = submit("a", 5h);
  sim_.advance(61min);
  const auto child = [&](std::optional<Duration> deadline) {
    Submission wish;
    wish.agent = "a";
    wish.parent = parent;
    wish.deadline = deadline;
    std::vector<Submission> wishes;
    wishes.push_back(std::move(wish));
    return get(fleet.submit(std::move(wishes))).front();
  };
  const auto first = child(10h);
  ASSERT_TRUE(first);
  EXPECT_TRUE(look(first->id).input.starts_with("60 ")) << "the parent has used 40";
  EXPECT_EQ(look(first->id).deadline, look(parent).expires_at);
  sim_.advance(3s);
  EXPECT_EQ(look(first->id).state, RunState::succeeded);
  const auto second = child(1min);
  ASSERT_TRUE(second);
  EXPECT_TRUE(look(second->id).input.starts_with("20 "));
  EXPECT_LT(look(second->id).deadline, look(parent).expires_at);
  sim_.advance(3s);
  EXPECT_EQ(look(second->id).state, RunState::expired) << "it would have used 40";
  const auto third = child({});
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code(), Errc::exhausted);
}

TEST_F(EngineTest, children_that_run_at_once_draw_on_one_budget) {
  add_agent("head", OnCrash::rerun);
  add_agent("child", OnCrash::rerun);
  book_["head"].budget.tokens = 100;
  decide_ = [](const domain::WorkOrder& order) {
    Script script{.takes = order.agent == "head" ? Duration(1h) : Duration(5s), .outcome = {}};
    script.outcome.kind = OutcomeKind::succeeded;
    if (order.agent == "child") script.uses = 40;
    return script;
  };
  start();
  LocalFleet fleet({sim_, store_, scribe_, ambient_, [this]() -> const Book& { return book_; }, engine_.get()}, {});
  const auto below = [&](const std::string& parent) {
    Submission wish;
    wish.agent = "child";
    wish.parent = parent;
    std::vector<Submission> wishes;
    wishes.push_back(std::move(wish));
    return get(fleet.submit(std::move(wishes))).front();
  };
  const std::string head = submit("head"), other = submit("child");
  sim_.advance(1s);
  const auto first = below(head);
  sim_.advance(1s);
  const auto second = below(head), grandchild = below(first->id);
  ASSERT_TRUE(grandchild);
  sim_.advance(3900ms);
  EXPECT_EQ(look(head).state, RunState::running) << "one has used 40";
  sim_.advance(2s);  // the two others have used 40 each
  for (const std::string& id : {head, first->id, second->id, grandchild->id}) {
    EXPECT_EQ(look(id).state, RunState::expired) << look(id).error;
    EXPECT_NE(look(id).error.find("tokens"), std::string::npos) << look(id).error;
  }
  sim_.advance(10s);
  EXPECT_EQ(look(other).state, RunState::succeeded) << "it is not of that family";
}

TEST_F(EngineTest, no_attempt_begins_when_others_have_used_up_what_it_draws_on) {
  add_agent("head", OnCrash::rerun);
  add_agent("child", OnCrash::rerun);
  book_["head"].budget.tokens = 100;
  decide_ = [](const domain::WorkOrder& order) {
    Script script{.takes = order.agent == "head" ? Duration(1h) : Duration(5s), .outcome = {}};
    script.outcome.kind = OutcomeKind::succeeded;
    if (order.agent == "child") script.uses = 50;
    return script;
  };
  start(3);
  LocalFleet fleet({sim_, store_, scribe_, ambient_, [this]() -> const Book& { return book_; }, engine_.get()}, {});
  const std::string head = submit("head");
  sim_.advance(1s);
  std::vector<Submission> wishes(3);
  for (Submission& wish : wishes) {
    wish.agent = "child";
    wish.parent = head;
  }
  const auto children = get(fleet.submit(std::move(wishes)));
  sim_.advance(1min);  // two of them use 100 together, which is not too much; the third had no worker
  EXPECT_EQ(look(children[0]->id).state, RunState::succeeded);
  EXPECT_EQ(look(children[1]->id).state, RunState::succeeded);
  EXPECT_EQ(look(children[2]->id).state, RunState::expired);
  EXPECT_NE(look(children[2]->id).error.find("nothing is left"), std::string::npos) << look(children[2]->id).error;
  EXPECT_EQ(begun_[children[2]->id], 0U);
  EXPECT_EQ(look(head).state, RunState::running);
}

TEST_F(EngineTest, what_the_host_lacks_for_a_moment_costs_no_attempt) {
  add_agent("a", OnCrash::doubt);
  book_["a"].budget.attempts = 1;
  int refused = 0;
  decide_ = [&](const domain::WorkOrder&) {
    Script script;
    script.outcome.kind = OutcomeKind::succeeded;
    if (refused++ < 5) script.does_not_begin = Error(Errc::exhausted, Retry::safe, "fork: no more processes");
    return script;
  };
  start();
  const std::string id = submit("a");
  sim_.advance(1s);
  EXPECT_EQ(look(id).state, RunState::parked);
  EXPECT_EQ(look(id).error, "fork: no more processes");
  sim_.advance(1min);
  EXPECT_EQ(look(id).state, RunState::succeeded);
  EXPECT_EQ(look(id).attempt, 1U);
}

TEST_F(EngineTest, what_can_never_begin_fails_at_once) {
  add_agent("a", OnCrash::rerun);
  decide_ = [](const domain::WorkOrder&) {
    return Script{.outcome = {}, .does_not_begin = Error(Errc::invalid, "there is no such program")};
  };
  start();
  const std::string id = submit("a");
  sim_.advance(1s);
  EXPECT_EQ(look(id).state, RunState::failed);
  EXPECT_EQ(begun_[id], 1U);
}

}  // namespace
}  // namespace stint::engine
