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
  EXPECT_EQ(make("tokens=10").due(), 0s) << "without a rate, at once";
}

TEST(ProviderGeneration, a_fault_strikes_once_after_its_tokens) {
  Generation generation = make("tokens=10 fault=malformed after=2");
  EXPECT_FALSE(generation.strikes_now());
  (void)generation.next();
  (void)generation.next();
  EXPECT_TRUE(generation.strikes_now());
  EXPECT_FALSE(generation.strikes_now());
  EXPECT_TRUE(make("fault=cut after=0").strikes_now());
  EXPECT_FALSE(make("fault=429 after=0").strikes_now()) << "not one of the stream";
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

TEST(ProviderGeneration, usage_says_what_was_made) {
  Generation generation = make("text=\"a b c\" cache_read=7");
  (void)generation.next();
  (void)generation.next();
  EXPECT_NE(generation.end().find(R"("cache_read_input_tokens":7,"output_tokens":2)"), std::string::npos);
}

}  // namespace
}  // namespace stint::provider
