// Conversations whose id is chosen before the agent starts: the next attempt continues it, or finds that it never
// began.
#include "engine/engine_world.hpp"

namespace stint::engine {
namespace {

TEST_F(EngineTest, a_chosen_conversation_is_stored_before_the_work_begins) {
  std::string asked;
  decide_ = [&](const domain::WorkOrder& order) {
    asked = order.new_conversation;
    Script script;
    script.takes = 10s;
    script.outcome.kind = OutcomeKind::succeeded;
    return script;
  };
  add_agent("a");
  start();
  const std::string unchosen = submit("a");
  sim_.advance(2s);
  EXPECT_EQ(asked, "");
  EXPECT_TRUE(look(unchosen).unsafe) << "no other node can continue it until its agent has named the conversation";
  chooses_ = true;
  const std::string chosen = submit("a");
  sim_.advance(2s);
  EXPECT_EQ(asked, "chosen:" + chosen + ":1");
  EXPECT_EQ(look(chosen).state, RunState::running);
  EXPECT_FALSE(look(chosen).unsafe);
  sim_.advance(20s);
  EXPECT_EQ(look(chosen).state, RunState::succeeded);
}

TEST_F(EngineTest, a_chosen_conversation_that_never_began_is_replaced_and_uses_up_no_attempt) {
  chooses_ = true;
  add_agent("a");
  get(store_.define({registry_["a"].entry}));
  const std::string id = submit("a");
  const auto dead = get(store_.enrol("dead"));
  const auto claims = get(store_.claim(dead, "a", 1, id));
  ASSERT_EQ(claims.size(), 1U);
  EXPECT_TRUE(get(store_.note(dead, claims[0].attempt_key(), "chosen_conversation", "chosen:x")));
  std::vector<std::string> orders;
  decide_ = [&](const domain::WorkOrder& order) {
    orders.push_back(order.conversation + (order.conversation_may_not_exist ? "?" : "") + " / " +
                     order.new_conversation);
    Script script;
    script.outcome.kind = orders.size() == 1 ? OutcomeKind::agent_error : OutcomeKind::succeeded;
    script.conversation_missing = orders.size() == 1;
    return script;
  };
  start();
  sim_.advance(2min);
  ASSERT_EQ(orders.size(), 2U);
  EXPECT_EQ(orders[0], "chosen:x? / ");
  EXPECT_TRUE(orders[1].starts_with(" / chosen:" + id)) << orders[1];
  EXPECT_EQ(look(id).state, RunState::succeeded);
  EXPECT_EQ(look(id).attempt, 1U);
}

}  // namespace
}  // namespace stint::engine
