// The client's half of the protocols against this server's half: two readings of one specification, in one test.
#include "model/answer_reader.hpp"
#include "model/gateway_usage.hpp"
#include "provider/protocol.hpp"

#include <gtest/gtest.h>

namespace stint::provider {
namespace {

using model::Dialect;

constexpr Tokens kCounted{.fresh = 40, .cache_read = 30, .cache_write = 0, .output = 25};

Protocol protocol_of(Dialect dialect) {
  switch (dialect) {
    case Dialect::anthropic: return Protocol::messages;
    case Dialect::chat: return Protocol::chat;
    case Dialect::responses: return Protocol::responses;
    case Dialect::gemini: break;
  }
  return Protocol::gemini;
}

model::ModelRequest request_of(std::string prompt) {
  model::ModelRequest request;
  request.model = "m-1";
  request.system = "Be brief.";
  request.output_tokens_max = 77;
  request.messages = {{.role = model::Role::user, .content = {model::TextBlock{std::move(prompt)}}}};
  request.tools = {{.name = "read", .description = "Reads.", .input_schema = R"({"type":"object"})"}};
  return request;
}

Ask asked(Dialect dialect, const model::ModelRequest& request) {
  const model::HttpRequest written = model::write_request(dialect, request).value();
  return read_ask(protocol_of(dialect), written.path, written.body).value();
}

/// Thinking, text and a call.
Reply whole_reply() {
  Reply reply;
  reply.thinking = "First look, then speak.";
  reply.text = "Reading the file.";
  reply.tools = {{.name = "read", .input = R"({"path":"a.txt"})"}};
  return reply;
}

std::string stream_of(const Ask& ask, const std::vector<Block>& blocks, Finish finish = Finish::complete) {
  const std::unique_ptr<Encoder> encoder = make_encoder(ask, 7);
  std::string bytes = encoder->begin(kCounted);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    bytes += encoder->open(i, blocks[i]);
    for (const std::string& piece : blocks[i].pieces) bytes += encoder->piece(i, blocks[i], piece);
    bytes += encoder->close(i, blocks[i]);
  }
  return bytes + encoder->end(blocks, kCounted, finish);
}

TEST(ProviderDialect, a_conversation_of_two_turns) {
  for (const Dialect dialect : model::kDialects) {
    model::ModelRequest request = request_of("Read a.txt.");
    const Ask first = asked(dialect, request);
    EXPECT_EQ(first.prompt, "Read a.txt.") << to_string(dialect);
    EXPECT_EQ(first.model, "m-1");
    EXPECT_EQ(first.output_max, 77U);
    EXPECT_TRUE(first.stream && first.wants_usage);

    model::AnswerReader reader(dialect);
    (void)reader.feed(stream_of(first, make_blocks(whole_reply(), first.prompt, 7)));
    (void)reader.finish();
    ASSERT_TRUE(reader.completed()) << to_string(dialect);
    EXPECT_EQ(reader.ignored(), 0U) << to_string(dialect);
    EXPECT_EQ(reader.answer_text(), "Reading the file.");
    EXPECT_EQ(reader.stopped()->reason, model::StopReason::tool_use);
    EXPECT_EQ(reader.usage(), (Usage{.fresh_in = 40, .cache_read = 30, .out = 25})) << to_string(dialect);
    EXPECT_EQ(reader.model(), "m-1");

    request.messages.push_back(reader.message());
    const std::vector<model::ToolCall> calls = model::unanswered_calls(request.messages);
    ASSERT_EQ(calls.size(), 1U) << to_string(dialect);
    EXPECT_EQ(calls[0].arguments, R"({"path":"a.txt"})");
    request.messages.push_back(
        {.role = model::Role::user,
         .content = {model::ToolResult{.call = calls[0].id, .content = "4", .is_error = false}}});
    const Ask second = asked(dialect, request);
    EXPECT_EQ(second.turn, 1U) << to_string(dialect);
    EXPECT_EQ(second.prompt, "Read a.txt.");
  }
}

TEST(ProviderDialect, an_answer_that_its_bound_cut) {
  for (const Dialect dialect : model::kDialects) {
    const Ask ask = asked(dialect, request_of("Go."));
    Reply reply;
    reply.text = "Too long";
    model::AnswerReader reader(dialect);
    (void)reader.feed(stream_of(ask, make_blocks(reply, ask.prompt, 7), Finish::cut));
    (void)reader.finish();
    EXPECT_TRUE(reader.completed());
    EXPECT_EQ(reader.stopped()->reason, model::StopReason::max_tokens) << to_string(dialect);
  }
}

TEST(ProviderDialect, answers_in_one_piece_pass_the_gateway) {
  for (const Dialect dialect : model::kDialects) {
    const Ask ask = asked(dialect, request_of("Go."));
    model::GatewayUsage gateway(dialect, {.status = 200, .headers = {{"content-type", "application/json"}}}, {});
    gateway.feed(make_encoder(ask, 7)->whole(make_blocks(whole_reply(), ask.prompt, 7), kCounted, Finish::complete));
    const model::AnswerSummary summary = gateway.finish();
    EXPECT_TRUE(summary.completed) << to_string(dialect);
    EXPECT_EQ(summary.usage, (Usage{.fresh_in = 40, .cache_read = 30, .out = 25})) << to_string(dialect);
    EXPECT_EQ(summary.stopped->reason, model::StopReason::tool_use) << to_string(dialect);
    EXPECT_EQ(summary.unknown, 0U) << to_string(dialect);
  }
}

TEST(ProviderDialect, faults_are_classified) {
  using model::FailureKind;
  for (const Dialect dialect : model::kDialects) {
    const auto kind = [&](const Failure& failure, const model::Headers& headers = {}) {
      const std::string body = error_body(protocol_of(dialect), failure, 1);
      return model::classify_response(dialect, failure.status, headers, body, {}).kind;
    };
    EXPECT_EQ(kind({.status = 429, .message = {}, .code = {}}, {{"retry-after", "2"}}), FailureKind::retry);
    EXPECT_EQ(kind({.status = 429, .message = {}, .code = {}}), FailureKind::quota) << to_string(dialect);
    EXPECT_EQ(kind({.status = 500, .message = {}, .code = {}}), FailureKind::retry);
    EXPECT_EQ(kind({.status = 529, .message = {}, .code = {}}), FailureKind::overload) << to_string(dialect);
    EXPECT_EQ(kind({.status = 401, .message = {}, .code = {}}), FailureKind::auth);
    EXPECT_EQ(kind({.status = 429, .spend_limit = true, .message = {}, .code = {}}, {{"retry-after", "2"}}),
              dialect == Dialect::gemini ? FailureKind::quota : FailureKind::spend_limit)
        << to_string(dialect);

    const Ask ask = asked(dialect, request_of("Go."));
    model::AnswerReader reader(dialect);
    const std::unique_ptr<Encoder> encoder = make_encoder(ask, 7);
    (void)reader.feed(encoder->begin(kCounted) + encoder->error({.status = 529, .message = {}, .code = {}}));
    (void)reader.finish();
    ASSERT_TRUE(reader.failure()) << to_string(dialect);
    EXPECT_NE(reader.failure()->error().retry(), Retry::never) << to_string(dialect);
  }
}

}  // namespace
}  // namespace stint::provider
