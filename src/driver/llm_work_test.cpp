#include "driver/llm_work.hpp"

#include "driver/llm_test_support.hpp"
#include "model/message_codec.hpp"
#include "stint/scope.hpp"

#include <gtest/gtest.h>

namespace stint::driver {
namespace {

using namespace std::chrono_literals;
using domain::ToolClass;
using Kind = domain::WorkUpdate::Kind;
using model::ScriptedReply;

/// Keeps what a store would.
class StoredContext final : public domain::WorkContext {
 public:
  void publish(const domain::WorkUpdate& update) override {
    if (update.kind == Kind::text) text += update.text;
    if (update.kind == Kind::note) notes.push_back(update.text);
    if (on_update) on_update(update);
  }
  Task<Result<>> effects_unknown() override {
    ++unknown;
    co_return Result<>();
  }
  Task<Result<>> effects_known() override {
    --unknown;
    co_return Result<>();
  }
  Task<Result<>> keep_message(std::uint32_t at, std::string body) override {
    if (at != kept.size()) co_return fail(Errc::invalid, "a message is missing");
    kept.push_back(std::move(body));
    co_return Result<>();
  }
  Task<Result<std::vector<std::string>>> messages(std::uint32_t from) override {
    const std::size_t most = std::min<std::size_t>(kept.size(), from + 2);  // pages of two
    co_return std::vector<std::string>(kept.begin() + std::min<std::ptrdiff_t>(from, std::ssize(kept)),
                                       kept.begin() + static_cast<std::ptrdiff_t>(most));
  }
  Task<Result<Permit>> acquire(std::string limit, std::uint32_t weight) override {
    limits.push_back(limit);
    return calls_.acquire_task(weight);
  }

  std::string text;
  std::vector<std::string> kept, notes, limits;
  int unknown = 0;
  std::function<void(const domain::WorkUpdate&)> on_update;

 private:
  struct Calls {
    Task<Result<Permit>> acquire_task(std::uint32_t weight) { co_return co_await semaphore.acquire(weight); }
    Semaphore semaphore{"calls", 4};
  } calls_;
};

class LlmWorkTest : public ::testing::Test {
 protected:
  ~LlmWorkTest() override {
    EXPECT_EQ(world_.transport.active, 0U);
    EXPECT_EQ(world_.toolbox.active, 0);
  }
  domain::WorkReport run(domain::WorkOrder order) {
    auto begun = world_.driver.begin(std::move(order), context_);
    EXPECT_TRUE(begun);
    work_ = std::move(*begun);
    std::optional<Result<std::unique_ptr<domain::WorkReport>>> ended;
    RootScope scope(world_.world.sim);
    scope.spawn([&]() -> Task<> { ended.emplace(co_await work_->run()); });
    EXPECT_TRUE(world_.world.sim.run_until([&] { return scope.idle(); }));
    EXPECT_TRUE(ended && *ended) << (ended ? ended->error().describe() : "stopped");
    return ended && *ended ? std::move(***ended) : domain::WorkReport();
  }
  domain::WorkReport run() { return run(world_.order("run1")); }
  /// Another attempt of the same run, which goes on with what the store has.
  domain::WorkReport resume() {
    domain::WorkOrder order = world_.order("run1");
    order.fence = domain::Fence{2};
    order.conversation = "llm:run1:1";
    order.conversation_may_not_exist = true;
    return run(std::move(order));
  }
  [[nodiscard]] std::size_t calls() const { return world_.transport.requests.size(); }
  [[nodiscard]] const std::string& body(std::size_t at) const { return world_.transport.requests.at(at).body; }

  std::vector<ScriptedReply> replies_;
  LlmWorld world_{[this](const model::WireRequest&) {
    if (replies_.empty()) return reply_text({"done"});
    ScriptedReply next = std::move(replies_.front());
    replies_.erase(replies_.begin());
    return next;
  }};
  StoredContext context_;
  std::unique_ptr<domain::Work> work_;
};

TEST_F(LlmWorkTest, each_message_is_kept_before_the_next_step) {
  world_.toolbox.tools["look"] = {};
  replies_ = {reply_with_calls("I look.", {{"call_1", "look"}})};
  std::vector<std::size_t> kept_at_tool;
  context_.on_update = [&](const domain::WorkUpdate& update) {
    if (update.kind == Kind::tool) kept_at_tool.push_back(context_.kept.size());
  };
  const auto report = run();
  EXPECT_EQ(report.outcome.kind, OutcomeKind::succeeded) << report.outcome.message;
  EXPECT_EQ(report.outcome.text, "done");
  EXPECT_EQ(kept_at_tool, std::vector<std::size_t>{2}) << "the call was stored before it was made";
  ASSERT_EQ(context_.kept.size(), 4U);
  EXPECT_NE(body(1).find("fine"), std::string::npos) << "the model got the result";
  EXPECT_EQ(context_.text, "I look.\ndone\n");
}

TEST_F(LlmWorkTest, tools_run_at_the_same_time_and_their_results_are_in_the_order_of_the_calls) {
  world_.toolbox.tools["slow"] = {.time = 5s, .result = {.text = "slow one"}};
  world_.toolbox.tools["quick"] = {.time = 1s, .result = {.text = "quick one"}};
  replies_ = {reply_with_calls("", {{"call_1", "slow"}, {"call_2", "quick"}})};
  const TimePoint since = world_.world.sim.now();
  EXPECT_EQ(run().outcome.kind, OutcomeKind::succeeded);
  EXPECT_EQ(world_.toolbox.active_most, 2);
  EXPECT_LT(world_.world.sim.now() - since, 6s);
  EXPECT_LT(context_.kept[2].find("slow one"), context_.kept[2].find("quick one"));
}

TEST_F(LlmWorkTest, a_read_tool_whose_result_was_lost_is_called_again_with_the_same_id) {
  world_.toolbox.tools["look"] = {};
  replies_ = {reply_with_calls("", {{"call_1", "look"}})};
  (void)run();
  context_.kept.resize(2);  // the node died before the result was stored
  const auto report = resume();
  EXPECT_EQ(report.outcome.kind, OutcomeKind::succeeded) << report.outcome.message;
  ASSERT_EQ(world_.toolbox.begun.size(), 2U);
  EXPECT_EQ(world_.toolbox.begun[0], world_.toolbox.begun[1]);
}

TEST_F(LlmWorkTest, a_once_tool_whose_result_was_lost_is_not_called_again_and_the_model_is_told) {
  world_.toolbox.tools["mail"].tool_class = ToolClass::once;
  replies_ = {reply_with_calls("", {{"call_1", "mail"}})};
  (void)run();
  context_.kept.resize(2);
  const std::size_t before = calls();
  const auto report = resume();
  EXPECT_EQ(report.outcome.kind, OutcomeKind::succeeded) << report.outcome.message;
  EXPECT_EQ(world_.toolbox.begun.size(), 1U);
  EXPECT_NE(body(before).find("outcome is unknown"), std::string::npos);
}

TEST_F(LlmWorkTest, an_answer_that_was_stored_is_not_asked_for_again) {
  (void)run();
  const auto report = resume();
  EXPECT_EQ(report.outcome.kind, OutcomeKind::succeeded);
  EXPECT_EQ(report.outcome.text, "done");
  EXPECT_EQ(calls(), 1U);
}

TEST_F(LlmWorkTest, a_once_call_with_an_unknown_outcome_puts_the_run_in_doubt) {
  world_.toolbox.tools["mail"] = {
      .tool_class = ToolClass::once,
      .result = {.text = "timed out", .is_error = true, .state = ToolResult::State::unknown}};
  replies_ = {reply_with_calls("", {{"call_1", "mail"}})};
  const auto report = run();
  EXPECT_EQ(report.outcome.kind, OutcomeKind::in_doubt);
  EXPECT_NE(report.outcome.message.find("mail: timed out"), std::string::npos);
  EXPECT_EQ(context_.unknown, 1);
  EXPECT_EQ(context_.kept.size(), 3U) << "what is known is stored";
}

TEST_F(LlmWorkTest, an_end_closes_the_stream_and_counts_it) {
  replies_ = {reply_text({"a", "b"}, 20s)};
  context_.on_update = [&](const domain::WorkUpdate& update) {
    if (update.kind == Kind::text) work_->end(OutcomeKind::cancelled, "by a person");
  };
  const auto report = run();
  EXPECT_EQ(report.outcome.kind, OutcomeKind::cancelled);
  EXPECT_EQ(report.outcome.message, "by a person");
  EXPECT_EQ(report.streams_closed, 1U);
  EXPECT_GT(report.outcome.usage.tokens(), 0) << "what was generated is paid for";
  EXPECT_EQ(context_.kept.size(), 1U) << "half an answer is not part of the conversation";
}

TEST_F(LlmWorkTest, a_hold_that_lasts_longer_than_the_idle_limit_does_not_break_the_stream) {
  replies_ = {reply_text({"a", "b", "c"}, 1s)};
  bool held = false;
  RootScope scope(world_.world.sim);
  context_.on_update = [&](const domain::WorkUpdate& update) {
    if (update.kind != Kind::text || std::exchange(held, true)) return;
    work_->hold(true);
    scope.spawn([&]() -> Task<> {
      co_await sleep_for(5min);
      work_->hold(false);
    });
  };
  EXPECT_EQ(run().outcome.text, "abc");
}

TEST_F(LlmWorkTest, an_answer_in_another_form_is_corrected_once) {
  domain::WorkOrder order = world_.order("run1");
  order.spec.output = R"({"type":"object","required":["ok"]})";
  replies_ = {reply_text({"yes"}), reply_text({R"({\"ok\":1})"})};
  const auto report = run(order);
  EXPECT_EQ(report.outcome.kind, OutcomeKind::succeeded) << report.outcome.message;
  EXPECT_EQ(report.outcome.text, R"({"ok":1})");
  EXPECT_NE(body(1).find("not have the form"), std::string::npos);
  context_.kept.clear();
  replies_ = {reply_text({"yes"}), reply_text({"no"})};
  const auto second = run(order);
  EXPECT_EQ(second.outcome.kind, OutcomeKind::agent_error);
  EXPECT_NE(second.outcome.message.find("after a correction"), std::string::npos);
  EXPECT_EQ(calls(), 4U);
}

TEST_F(LlmWorkTest, with_permissions_read_a_tool_that_changes_something_is_not_offered_and_denied) {
  world_.toolbox.tools["mail"].tool_class = ToolClass::once;
  world_.toolbox.tools["look"] = {};
  replies_ = {reply_with_calls("", {{"call_1", "mail"}})};
  domain::WorkOrder order = world_.order("run1");
  order.spec.invocation.permissions = domain::Permissions::read;
  const auto report = run(std::move(order));
  ASSERT_EQ(report.outcome.denials.size(), 1U);
  EXPECT_EQ(report.outcome.denials[0].allow, "permissions: edit");
  EXPECT_TRUE(world_.toolbox.begun.empty());
  EXPECT_EQ(body(0).find(R"("name":"mail")"), std::string::npos);
  EXPECT_NE(body(0).find(R"("name":"look")"), std::string::npos);
}

TEST_F(LlmWorkTest, a_budget_of_tokens_that_is_used_up_ends_the_attempt) {
  domain::WorkOrder order = world_.order("run1");
  order.spec.invocation.tokens_max = 20;
  const auto report = run(std::move(order));
  EXPECT_EQ(report.outcome.kind, OutcomeKind::over_budget);
  EXPECT_EQ(calls(), 0U) << "nothing fits";
}

TEST_F(LlmWorkTest, an_end_at_the_usage_of_the_last_call_decides_the_outcome) {
  context_.on_update = [&](const domain::WorkUpdate& update) {
    if (update.kind == Kind::usage) work_->end(OutcomeKind::over_budget, "it has used too much");
  };
  EXPECT_EQ(run().outcome.kind, OutcomeKind::over_budget);
  EXPECT_EQ(calls(), 1U);
}

TEST_F(LlmWorkTest, a_refused_key_is_an_expired_login) {
  replies_ = {model::refusal_with(401)};
  EXPECT_EQ(run().outcome.kind, OutcomeKind::not_logged_in);
}

TEST_F(LlmWorkTest, a_model_that_never_ends_is_stopped_at_its_turns) {
  world_.toolbox.tools["look"] = {};
  for (int i = 0; i < 5; ++i) replies_.push_back(reply_with_calls("", {{"call_1", "look"}}));
  domain::WorkOrder order = world_.order("run1");
  order.spec.invocation.turns_max = 3;
  const auto report = run(std::move(order));
  EXPECT_EQ(report.outcome.kind, OutcomeKind::agent_error);
  EXPECT_EQ(calls(), 3U);
}

TEST_F(LlmWorkTest, the_key_is_in_no_output) {
  replies_ = {reply_text({"my key is sk-very-", "secret-key, really"})};
  domain::WorkOrder order = world_.order("run1");
  order.spec.endpoint.key = "sk-very-secret-key";
  const auto report = run(std::move(order));
  EXPECT_EQ(context_.text, "my key is ***, really\n");
  EXPECT_EQ(report.outcome.text, "my key is ***, really");
}

TEST_F(LlmWorkTest, each_model_call_takes_the_limits_of_calls) {
  domain::WorkOrder order = world_.order("run1");
  order.spec.call_limits.push_back({.name = "model"});
  EXPECT_EQ(run(std::move(order)).outcome.kind, OutcomeKind::succeeded);
  EXPECT_EQ(context_.limits, std::vector<std::string>{"model"});
}

}  // namespace
}  // namespace stint::driver
