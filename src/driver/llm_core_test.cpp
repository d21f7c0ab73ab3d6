#include "driver/llm_core.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace stint::driver {
namespace {

using model::Message;
using model::Role;
using namespace std::chrono_literals;

Message said(std::string text) { return {.role = Role::assistant, .content = {model::TextBlock{std::move(text)}}}; }
Message called(const std::vector<model::ToolCall>& calls) {
  Message message{.role = Role::assistant, .content = {model::TextBlock{"I look."}}};
  for (const model::ToolCall& call : calls) message.content.emplace_back(call);
  return message;
}
const std::vector<model::ToolCall> kTwoCalls{{.id = "a", .name = "read", .arguments = "{}"},
                                             {.id = "b", .name = "mail", .arguments = "{}"}};

model::ModelAnswer failed(model::FailureKind kind, int status, std::optional<Duration> delay = std::nullopt) {
  model::ModelAnswer answer;
  answer.end = model::CallEnd::failed;
  answer.failure = model::Failure{.kind = kind, .status = status, .delay = delay, .code = {}, .message = "because"};
  answer.error = answer.failure->error();
  return answer;
}

TEST(LlmCore, the_messages_alone_decide_what_comes_next) {
  std::vector<Message> messages{user_message("do it")};
  EXPECT_EQ(next_step(messages), NextStep::ask);
  messages.push_back(called(kTwoCalls));
  EXPECT_EQ(next_step(messages), NextStep::answer);
  messages.push_back(results_message(kTwoCalls, std::vector<ToolResult>{{.text = "1"}, {.text = "2"}}));
  EXPECT_EQ(next_step(messages), NextStep::ask);
  messages.push_back(said("done"));
  EXPECT_EQ(next_step(messages), NextStep::finish);
  EXPECT_EQ(answer_text(messages.back(), false), "done");
}

TEST(LlmCore, results_are_in_the_order_of_the_calls) {
  const Message message =
      results_message(kTwoCalls, std::vector<ToolResult>{{.text = "first"}, {.text = "second", .is_error = true}});
  ASSERT_EQ(message.content.size(), 2U);
  EXPECT_EQ(std::get<model::ToolResult>(message.content[0]), (model::ToolResult{.call = "a", .content = "first"}));
  EXPECT_EQ(std::get<model::ToolResult>(message.content[1]),
            (model::ToolResult{.call = "b", .content = "second", .is_error = true}));
}

TEST(LlmCore, a_call_that_was_lost_says_that_its_outcome_is_unknown) {
  const ToolResult result = lost_result("mail");
  EXPECT_TRUE(result.is_error);
  EXPECT_NE(result.text.find("outcome is unknown"), std::string::npos);
  EXPECT_NE(result.text.find("mail"), std::string::npos);
}

TEST(LlmCore, a_short_conversation_is_sent_whole) {
  const std::vector<Message> messages{user_message("do it"), said("done")};
  const auto sent = messages_to_send(messages, 100);
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->messages, messages);
  EXPECT_EQ(sent->results_left_out, 0U);
}

std::vector<Message> long_conversation(int rounds) {
  std::vector<Message> messages{user_message("do it")};
  for (int i = 0; i < rounds; ++i) {
    const std::vector<model::ToolCall> calls{{.id = std::to_string(i), .name = "read", .arguments = "{}"}};
    messages.push_back(called(calls));
    messages.push_back(results_message(calls, std::vector<ToolResult>{{.text = std::string(1000, 'x')}}));
  }
  return messages;
}

TEST(LlmCore, a_long_conversation_leaves_out_the_oldest_results_and_says_so) {
  const auto messages = long_conversation(12);
  const auto sent = messages_to_send(messages, 10'000);
  ASSERT_TRUE(sent);
  EXPECT_GT(sent->results_left_out, 0U);
  EXPECT_EQ(sent->messages.size(), messages.size()) << "no message is missing: a provider wants each result";
  EXPECT_NE(std::get<model::ToolResult>(sent->messages[2].content[0]).content.find("1000 bytes, is left out"),
            std::string::npos);
  EXPECT_EQ(sent->messages.back(), messages.back()) << "the last results are new to the model";
  EXPECT_EQ(sent->messages.front(), messages.front());
}

TEST(LlmCore, what_is_left_out_changes_rarely) {
  const auto one = messages_to_send(long_conversation(13), 10'000);
  const auto next = messages_to_send(long_conversation(14), 10'000);
  ASSERT_TRUE(one && next);
  EXPECT_EQ(one->results_left_out, next->results_left_out) << "the provider's cache keeps its prefix";
}

TEST(LlmCore, a_conversation_that_is_too_long_by_itself_is_refused) {
  const std::vector<Message> messages{user_message(std::string(2000, 'x'))};
  const auto sent = messages_to_send(messages, 1000);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error(), Errc::exhausted);
  EXPECT_NE(sent.error().what().find("at most 1000"), std::string::npos);
}

TEST(LlmCore, an_answer_is_compared_with_its_schema_and_corrected_once) {
  const auto schema =
      JsonSchema::parse(R"({"type":"object","required":["ok"],"properties":{"ok":{"type":"boolean"}}})");
  ASSERT_TRUE(schema);
  EXPECT_EQ(mismatch_of(*schema, R"({"ok":true})"), "");
  EXPECT_NE(mismatch_of(*schema, R"({"ok":1})"), "");
  EXPECT_NE(mismatch_of(*schema, "fine").find("not JSON"), std::string::npos);
  std::vector<Message> messages{user_message("do it"), said("fine")};
  EXPECT_FALSE(was_corrected(messages));
  messages.push_back(correction("it is not JSON"));
  EXPECT_TRUE(was_corrected(messages));
}

TEST(LlmCore, permissions_read_allow_only_tools_that_change_nothing) {
  using enum domain::ToolClass;
  for (const auto tool_class : {read, idempotent, keyed, once}) {
    EXPECT_EQ(is_permitted(tool_class, domain::Permissions::read), tool_class == read);
    EXPECT_TRUE(is_permitted(tool_class, domain::Permissions::edit));
  }
  EXPECT_EQ(denial_of(kTwoCalls[1], once).allow, "permissions: edit");
  EXPECT_NE(denial_of(kTwoCalls[1], std::nullopt).allow.find("name: mail"), std::string::npos);
}

TEST(LlmCore, each_failure_has_its_outcome) {
  using enum model::FailureKind;
  struct Row {
    model::FailureKind failure;
    int status;
    OutcomeKind outcome;
  };
  const std::vector<Row> rows{
      {quota, 429, OutcomeKind::rate_limited},    {retry, 429, OutcomeKind::rate_limited},
      {retry, 500, OutcomeKind::api_error},       {overload, 529, OutcomeKind::api_error},
      {spend_limit, 429, OutcomeKind::api_error}, {auth, 401, OutcomeKind::not_logged_in},
      {denied, 403, OutcomeKind::api_error},      {invalid, 400, OutcomeKind::api_error},
      {not_found, 404, OutcomeKind::api_error},   {context_too_long, 400, OutcomeKind::agent_error},
      {ambiguous, 0, OutcomeKind::api_error},     {failed, 500, OutcomeKind::agent_error},
  };
  for (const Row& row : rows) {
    const auto outcome = bad_end(driver::failed(row.failure, row.status, 30s));
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->kind, row.outcome) << model::to_string(row.failure);
    EXPECT_NE(outcome->message, "");
    EXPECT_EQ(outcome->retry_after.has_value(), row.failure != spend_limit) << model::to_string(row.failure);
    EXPECT_FALSE(outcome->unreachable);
  }
}

TEST(LlmCore, a_provider_that_could_not_be_reached_is_distinguished_from_one_that_broke_off) {
  auto answer = failed(model::FailureKind::retry, 0);
  answer.failure->repeat = Retry::safe;
  EXPECT_TRUE(bad_end(answer)->unreachable);
  answer.failure->repeat = Retry::unknown;
  EXPECT_FALSE(bad_end(answer)->unreachable);
}

TEST(LlmCore, a_budget_that_ends_a_call_is_an_outcome_of_its_own) {
  model::ModelAnswer answer;
  answer.end = model::CallEnd::cut;
  EXPECT_EQ(bad_end(answer)->kind, OutcomeKind::over_budget);
  answer.end = model::CallEnd::completed;
  answer.stop = model::StopReason::max_tokens;
  answer.output_lowered = true;
  EXPECT_EQ(bad_end(answer)->kind, OutcomeKind::over_budget);
  answer.output_lowered = false;
  EXPECT_EQ(bad_end(answer)->kind, OutcomeKind::agent_error);
  EXPECT_EQ(unsent_call(Error(Errc::exhausted, Retry::never, "no tokens")).kind, OutcomeKind::over_budget);
  answer.stop = model::StopReason::end_turn;
  EXPECT_FALSE(bad_end(answer));
}

}  // namespace
}  // namespace stint::driver
