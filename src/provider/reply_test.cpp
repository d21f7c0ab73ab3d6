#include "provider/reply.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

namespace stint::provider {
namespace {

using namespace std::chrono_literals;

Reply read(std::string_view line) {
  Reply reply;
  const Result<> done = apply_directive(reply, line);
  EXPECT_TRUE(done) << done.error().what();
  return reply;
}
std::string refusal(std::string_view line) {
  Reply reply;
  const Result<> done = apply_directive(reply, line);
  return done ? "accepted" : std::string(done.error().what());
}

TEST(ProviderReply, a_line_sets_every_key) {
  const Reply reply =
      read(R"(delay=2s first_token=250ms tokens=200 rate=40/s fault=429 retry_after=3 after=7 times=2 cache_read=5 )"
           R"(cache_write=6 deaf=true text="two \"words\"\nand a line" thinking=hm message=no header="a: b c")");
  EXPECT_EQ(reply.delay, 2s);
  EXPECT_EQ(reply.first_token, 250ms);
  EXPECT_EQ(reply.tokens, 200);
  EXPECT_EQ(reply.rate, 40);
  EXPECT_EQ(reply.fault, Fault::status);
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(reply.retry_after, "3");
  EXPECT_EQ(reply.after, 7);
  EXPECT_EQ(reply.times, 2);
  EXPECT_EQ(reply.cache_read, 5);
  EXPECT_EQ(reply.cache_write, 6);
  EXPECT_TRUE(reply.deaf);
  EXPECT_EQ(reply.text, "two \"words\"\nand a line");
  EXPECT_EQ(reply.thinking, "hm");
  EXPECT_EQ(reply.message, "no");
  ASSERT_EQ(reply.headers.size(), 1);
  EXPECT_EQ(reply.headers[0].first, "a");
  EXPECT_EQ(reply.headers[0].second, "b c");
}

TEST(ProviderReply, a_tools_input_may_hold_spaces_braces_and_quotes) {
  const Reply reply = read(R"(tool=Bash input={"command": "echo \"} {\"", "deep": {"a": 1}} tool=Read tokens=3)");
  ASSERT_EQ(reply.tools.size(), 2);
  EXPECT_EQ(reply.tools[0].name, "Bash");
  EXPECT_EQ(reply.tools[0].input, R"({"command": "echo \"} {\"", "deep": {"a": 1}})");
  EXPECT_EQ(reply.tools[1].input, "{}");
  EXPECT_EQ(reply.tokens, 3);
}

TEST(ProviderReply, a_refusal_names_the_key_the_value_and_the_remedy) {
  EXPECT_NE(refusal("colour=red").find("colour=red: unknown key; allowed: text"), std::string::npos);
  EXPECT_NE(refusal("rate=fast").find("rate=fast: give tokens a second"), std::string::npos);
  EXPECT_NE(refusal("tokens=100001").find("from 0 to 100000"), std::string::npos);
  EXPECT_NE(refusal("delay=2h").find("up to 1h"), std::string::npos);
  EXPECT_NE(refusal("fault=boom").find("half_stream"), std::string::npos);
  EXPECT_NE(refusal("input={}").find("name the tool"), std::string::npos);
  EXPECT_NE(refusal("tool=x input=[]").find("JSON object"), std::string::npos);
  EXPECT_NE(refusal("header=nothing").find("name:value"), std::string::npos);
  EXPECT_NE(refusal("header=\"a: b\nc: d\"").find("name:value"), std::string::npos);
  EXPECT_NE(refusal("retry_after=\"1\nx: y\"").find("seconds"), std::string::npos);
  EXPECT_NE(refusal("hello").find("write key=value"), std::string::npos);
  EXPECT_NE(refusal("deaf=yes").find("true or false"), std::string::npos);
  EXPECT_NE(refusal("tool=x input={\"a\"").find("brace is not closed"), std::string::npos);
}

TEST(ProviderReply, any_line_is_read_or_refused) {
  EXPECT_TRUE(rc::check("no line makes it crash", [](const std::string& line) {
    Reply reply;
    (void)apply_directive(reply, line);
    (void)apply_directive(reply, "text=\"" + line);
    (void)apply_directive(reply, "tool=x input={" + line);
  }));
}

TEST(ProviderReply, directives_are_lines_of_their_own) {
  const auto lines = directives("first\n  @provider: a=1\nnot @provider: b=2\r\n@provider:c=3");
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[0], " a=1");
  EXPECT_EQ(lines[1], "c=3");
}

TEST(ProviderReply, tokens_together_are_the_text_and_whole_characters) {
  EXPECT_TRUE(rc::check([](const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += word + "ä€ 😀\n";
    std::string together;
    for (const std::string& piece : split_tokens(text)) {
      RC_ASSERT(!piece.empty());
      together += piece;
    }
    RC_ASSERT(together == text);
  }));
  for (const std::string& piece : split_tokens("ääääääääääääää€€€€€€€€€€😀😀😀😀😀😀")) {
    EXPECT_NE(static_cast<unsigned char>(piece[0]) & 0xC0, 0x80) << "begins in the middle of a character";
  }
}

TEST(ProviderReply, the_text_is_cut_or_repeated_to_the_tokens_asked_for) {
  const auto said = [](std::string_view line) { return make_blocks(read(line), "", 1).front().whole(); };
  EXPECT_EQ(said("text=\"a b c\" tokens=2"), "a b ");
  EXPECT_EQ(said("text=\"a b\" tokens=5"), "a b a b a ");
  EXPECT_EQ(said("text=\"a b\""), "a b");
  EXPECT_EQ(make_blocks(read("tokens=100000"), "hi", 1).front().pieces.size(), 100000);
  Reply endless;
  endless.text = std::string(Reply::kTextMax, ' ');
  for (std::size_t i = 0; i < endless.text->size(); i += 2) (*endless.text)[i] = 'x';
  EXPECT_EQ(make_blocks(endless, "", 1).front().pieces.size(), Reply::kTokensMax) << "a stream is bounded";
}

TEST(ProviderReply, the_built_in_reply_depends_on_the_prompt_only) {
  std::set<std::string> replies;
  for (int i = 0; i < 50; ++i) {
    const std::string prompt = "prompt " + std::to_string(i);
    EXPECT_EQ(built_in_reply(prompt), built_in_reply(prompt));
    replies.insert(built_in_reply(prompt));
  }
  EXPECT_GT(replies.size(), 20);
}

TEST(ProviderReply, with_tools_and_no_text_only_the_calls_are_made_with_distinct_ids) {
  const auto first = make_blocks(read("tool=a tool=b"), "hi", 1);
  const auto second = make_blocks(read("tool=a"), "hi", 2);
  ASSERT_EQ(first.size(), 2);
  EXPECT_EQ(first[0].kind, Block::Kind::tool);
  EXPECT_EQ((std::set{first[0].id, first[1].id, second[0].id}).size(), 3);
}

}  // namespace
}  // namespace stint::provider
