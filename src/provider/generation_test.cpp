#include "provider/generation.hpp"

#include <gtest/gtest.h>

namespace stint::provider {
namespace {

using namespace std::chrono_literals;

Generation make(std::string_view line, Protocol protocol = Protocol::messages) {
  Ask ask;
  ask.protocol = protocol;
  ask.model = "m";
  Reply reply;
  EXPECT_TRUE(apply_directive(reply, line));
  return {ask, std::move(reply), 1};
}
std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// How a protocol reports an answer that its caller's bound cut, in a stream and in one body, and one that is complete.
struct CutWords {
  Protocol protocol;
  std::string_view cut, complete;
};
constexpr CutWords kCutWords[] = {
    {Protocol::messages, R"("stop_reason":"max_tokens")", R"("stop_reason":"end_turn")"},
    {Protocol::chat, R"("finish_reason":"length")", R"("finish_reason":"stop")"},
    {Protocol::responses, R"("incomplete_details":{"reason":"max_output_tokens"})", R"("status":"completed")"},
    {Protocol::gemini, R"("finishReason":"MAX_TOKENS")", R"("finishReason":"STOP")"},
};

TEST(ProviderGeneration, an_answer_is_not_longer_than_its_caller_allows) {
  const auto bounded = [](Protocol protocol, std::string_view line, std::optional<std::uint32_t> most) {
    Ask ask;
    ask.protocol = protocol;
    ask.model = "m";
    ask.output_max = most;
    Reply reply;
    EXPECT_TRUE(apply_directive(reply, line));
    return Generation(ask, std::move(reply), 1);
  };
  for (const CutWords& words : kCutWords) {
    for (const std::uint32_t most : {1U, 2U, 3U, 4U, 9U}) {
      for (const std::string_view line :
           {R"(text="a b c")", R"(text="a b" tool=f input={"long": "0123456789abcdef"})"}) {
        Generation streamed = bounded(words.protocol, line, most);
        Generation at_once = bounded(words.protocol, line, most);
        Generation free = bounded(words.protocol, line, std::nullopt);
        EXPECT_EQ(streamed.total(), std::min(most, free.total()));
        std::string stream = streamed.begin();
        while (!streamed.done()) stream += streamed.next();
        stream += streamed.end();
        while (!at_once.done()) at_once.skip();
        const std::string body = at_once.whole();
        const bool cut = most < free.total();
        EXPECT_EQ(stream.contains(words.cut), cut) << to_string(words.protocol) << ' ' << most << ' ' << stream;
        EXPECT_EQ(body.contains(words.cut), cut) << to_string(words.protocol) << ' ' << most << ' ' << body;
        if (cut || line.contains("tool")) continue;
        EXPECT_TRUE(stream.contains(words.complete)) << stream;
        EXPECT_TRUE(body.contains(words.complete)) << body;
      }
    }
  }
}

TEST(ProviderGeneration, tokens_are_due_at_the_rate) {
  Generation generation = make("tokens=10 rate=10/s");
  EXPECT_EQ(generation.total(), 10);
  EXPECT_EQ(generation.due(), 0s);
  (void)generation.next();
  EXPECT_EQ(generation.due(), 100ms);
  for (int i = 0; i < 4; ++i) generation.skip();
  EXPECT_EQ(generation.due(), 500ms);
  EXPECT_FALSE(generation.done());
  for (int i = 0; i < 5; ++i) generation.skip();
  EXPECT_TRUE(generation.done());
  EXPECT_EQ(make("tokens=10").due(), 0s) << "no rate: immediately";
}

TEST(ProviderGeneration, a_fault_strikes_once_after_its_tokens) {
  Generation generation = make("tokens=10 fault=malformed after=2");
  EXPECT_FALSE(generation.strikes_now());
  (void)generation.next();
  (void)generation.next();
  EXPECT_TRUE(generation.strikes_now());
  EXPECT_FALSE(generation.strikes_now());
  EXPECT_TRUE(make("fault=cut after=0").strikes_now());
  EXPECT_FALSE(make("fault=429 after=0").strikes_now()) << "not a stream fault";
}

TEST(ProviderGeneration, every_block_is_opened_and_closed_in_every_protocol) {
  const auto whole_stream = [](Protocol protocol) {
    Generation generation = make(R"(thinking="a b" text="" tool=f input={"a":1} tool=g)", protocol);
    std::string out = generation.begin();
    while (!generation.done()) out += generation.next();
    return out + generation.end();
  };
  const std::string messages = whole_stream(Protocol::messages);
  EXPECT_EQ(count(messages, "event: content_block_start"), 4);
  EXPECT_EQ(count(messages, "event: content_block_stop"), 4);
  EXPECT_EQ(count(messages, "event: message_stop"), 1);
  const std::string responses = whole_stream(Protocol::responses);
  EXPECT_EQ(count(responses, "event: response.output_item.added"), 4);
  EXPECT_EQ(count(responses, "event: response.output_item.done"), 4);
  EXPECT_EQ(count(whole_stream(Protocol::chat), "data: [DONE]"), 1);
  EXPECT_EQ(count(whole_stream(Protocol::gemini), "functionCall"), 2);
}

TEST(ProviderGeneration, an_empty_text_is_still_an_answer) {
  Generation generation = make("text=\"\"");
  EXPECT_TRUE(generation.done());
  EXPECT_EQ(count(generation.begin() + generation.end(), "event: content_block_st"), 2);
}

TEST(ProviderGeneration, usage_counts_the_generated_tokens) {
  Generation generation = make("text=\"a b c\" cache_read=7");
  (void)generation.next();
  (void)generation.next();
  EXPECT_NE(generation.end().find(R"("cache_read_input_tokens":7,"output_tokens":2)"), std::string::npos);
}

}  // namespace
}  // namespace stint::provider
