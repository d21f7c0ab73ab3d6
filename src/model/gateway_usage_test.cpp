#include "model/gateway_usage.hpp"

#include "model/stream_test_support.hpp"

#include <rapidcheck.h>

namespace stint::model {
namespace {

constexpr int kOk = 200;

AnswerHead stream_head() { return {.status = kOk, .headers = {{"Content-Type", "text/event-stream; charset=utf-8"}}}; }
AnswerHead body_head(int status = kOk) { return {.status = status, .headers = {{"content-type", "application/json"}}}; }

AnswerSummary observe(Dialect dialect, const AnswerHead& head, std::string_view bytes, std::size_t piece = 17) {
  GatewayUsage gateway(dialect, head, {});
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) gateway.feed(bytes.substr(0, piece));
  return gateway.finish();
}

TEST(GatewayUsage, streams_give_what_an_own_call_would_give) {
  for (const NamedStream& stream : named_streams()) {
    if (stream.name == "chat_malformed") continue;  // an own call fails there
    const std::string bytes = model_stream(stream.name);
    const ReadAnswer own = read_answer(stream.dialect, bytes);
    const AnswerSummary seen = observe(stream.dialect, stream_head(), bytes);
    EXPECT_EQ(seen.usage.value_or(Usage()), own.usage) << stream.name;
    EXPECT_EQ(seen.stopped, own.stopped) << stream.name;
    EXPECT_EQ(seen.failure, own.failure) << stream.name;
    EXPECT_EQ(seen.completed, own.completed) << stream.name;
    EXPECT_EQ(seen.unknown, own.ignored) << stream.name;
  }
}

TEST(GatewayUsage, answers_in_one_piece) {
  const AnswerSummary anthropic = observe(Dialect::anthropic, body_head(), R"({"id":"msg_1","type":"message",
      "role":"assistant","model":"claude-test-1","content":[{"type":"text","text":"Hi"},{"type":"tool_use","id":"t",
      "name":"read","input":{"path":"a"}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"cache_read_input_tokens":4,
      "output_tokens":5}})");
  EXPECT_TRUE(anthropic.completed);
  EXPECT_EQ(anthropic.model, "claude-test-1");
  EXPECT_EQ(anthropic.usage, (Usage{.fresh_in = 3, .cache_read = 4, .out = 5}));
  EXPECT_EQ(anthropic.stopped->reason, StopReason::tool_use);

  const AnswerSummary chat =
      observe(Dialect::chat, body_head(), R"({"id":"c","model":"gpt-test-1","choices":[{"index":0,
      "message":{"role":"assistant","content":"Hi","refusal":null},"finish_reason":"length"}],
      "usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}})");
  EXPECT_TRUE(chat.completed);
  EXPECT_EQ(chat.usage, (Usage{.fresh_in = 6, .cache_read = 4, .out = 2}));
  EXPECT_EQ(chat.stopped->reason, StopReason::max_tokens);

  const AnswerSummary responses = observe(Dialect::responses, body_head(), R"({"id":"r","object":"response",
      "status":"completed","model":"gpt-test-2","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}],
      "usage":{"input_tokens":7,"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1}}})");
  EXPECT_TRUE(responses.completed);
  EXPECT_EQ(responses.usage, (Usage{.fresh_in = 7, .out = 2, .reasoning = 1}));

  const std::string chunk = R"({"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}],
      "usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":2,"thoughtsTokenCount":1},"modelVersion":"g"})";
  for (const std::string& body : {chunk, "[" + chunk + "]"}) {
    const AnswerSummary gemini = observe(Dialect::gemini, body_head(), body);
    EXPECT_TRUE(gemini.completed);
    EXPECT_EQ(gemini.usage, (Usage{.fresh_in = 7, .out = 3, .reasoning = 1}));
  }
}

TEST(GatewayUsage, refusals_are_classified) {
  const AnswerSummary summary = observe(Dialect::anthropic, body_head(529),
                                        R"({"type":"error","error":{"type":"overloaded_error","message":"x"}})");
  EXPECT_EQ(summary.failure->kind, FailureKind::overload);
  EXPECT_FALSE(summary.completed);
}

TEST(GatewayUsage, what_it_does_not_understand_is_unknown) {
  for (const Dialect dialect : kDialects) {
    for (const std::string_view bytes :
         {"", "{}", "[]", "hello", "\x1f\x8b compressed", R"({"usage":4,"choices":5})"}) {
      const AnswerSummary whole = observe(dialect, body_head(), bytes);
      EXPECT_GT(whole.unknown, 0U) << to_string(dialect) << " " << bytes;
      EXPECT_FALSE(whole.usage) << bytes;
      EXPECT_FALSE(whole.failure) << bytes;
      EXPECT_FALSE(observe(dialect, stream_head(), bytes).completed);
    }
    const std::string huge(GatewayUsage::kBodyMax + 10, '[');
    EXPECT_EQ(observe(dialect, body_head(), huge, 1 << 20).unknown, 1U);
    const std::string line = "data: " + std::string(SseParser::kEventBytesMax + 10, 'x');
    EXPECT_GT(observe(dialect, stream_head(), line, 1 << 20).unknown, 0U);
  }
}

TEST(GatewayUsage, usage_is_known_while_the_stream_runs) {
  GatewayUsage gateway(Dialect::anthropic, stream_head(), {});
  const std::string bytes = model_stream("anthropic_tools");
  gateway.feed(std::string_view(bytes).substr(0, bytes.find("content_block_start")));
  EXPECT_EQ(gateway.usage(), (Usage{.fresh_in = 12, .cache_read = 400, .cache_write = 30, .out = 1}));
}

TEST(GatewayUsageProperty, any_bytes) {
  EXPECT_TRUE(rc::check([](const std::string& bytes, bool streams, std::uint8_t piece) {
    for (const Dialect dialect : kDialects) {
      const AnswerHead head = streams ? stream_head() : body_head();
      const AnswerSummary summary = observe(dialect, head, bytes, piece + 1U);
      RC_ASSERT(!summary.usage || summary.usage->tokens() >= 0);
    }
  }));
}

}  // namespace
}  // namespace stint::model
