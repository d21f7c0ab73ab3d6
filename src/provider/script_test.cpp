#include "provider/script.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace stint::provider {
namespace {

Script parsed(std::string_view text) {
  Result<Script> script = Script::parse(text);
  EXPECT_TRUE(script) << script.error().what();
  return script ? std::move(*script) : Script();
}
std::string script_refusal(std::string_view text) {
  const Result<Script> script = Script::parse(text);
  return script ? "accepted" : std::string(script.error().what());
}
std::string text_for(Script& script, std::string_view prompt, std::uint32_t turn = 0) {
  const Result<Reply> reply = script.reply_to({"messages", "model-a", prompt, turn});
  return reply ? reply->text.value_or("house") : std::string(reply.error().what());
}

TEST(ProviderScript, the_first_rule_that_fits_wins) {
  Script script = parsed(R"(
[default]
rate = 50
[[reply]]
match = "tea"
text = "tea it is"
[[reply]]
model = "model-b"
text = "never"
[[reply]]
protocol = "chat"
text = "never"
[[reply]]
turn = 1
text = "second turn"
[[reply]]
match = "e"
text = "late"
)");
  EXPECT_EQ(text_for(script, "some tea"), "tea it is");
  EXPECT_EQ(text_for(script, "x", 1), "second turn");
  EXPECT_EQ(text_for(script, "e"), "late");
  EXPECT_EQ(text_for(script, "x"), "house");
  EXPECT_EQ(script.reply_to({"messages", "m", "e", 0})->rate, 50) << "the default's keys apply to every rule";
}

TEST(ProviderScript, json_and_toml_are_equivalent) {
  Script script = parsed(R"( {"reply": [{"input": {"a": 1}, "tool": "f"}, {"tools": [{"name": "g"}], "turn": 5}]})");
  const Result<Reply> reply = script.reply_to({"messages", "m", "", 0});
  ASSERT_EQ(reply->tools.size(), 1);
  EXPECT_EQ(reply->tools[0].input, R"({"a":1})") << "in any order of the keys";
}

TEST(ProviderScript, a_rule_with_times_is_skipped_when_used_up) {
  Script script = parsed("[[reply]]\ntimes = 2\ntext = 'a'\n[[reply]]\ntext = 'b'\n");
  EXPECT_EQ(text_for(script, ""), "a");
  EXPECT_EQ(text_for(script, ""), "a");
  EXPECT_EQ(text_for(script, ""), "b");
}

TEST(ProviderScript, the_prompts_own_line_wins_and_is_for_its_turn) {
  Script script = parsed("[[reply]]\ntext = 'rule'\nrate = 7\n");
  const std::string prompt = "@provider: text=one\n@provider: text=two";
  EXPECT_EQ(text_for(script, prompt, 0), "one");
  EXPECT_EQ(text_for(script, prompt, 1), "two");
  EXPECT_EQ(text_for(script, prompt, 2), "rule");
  EXPECT_EQ(script.reply_to({"messages", "m", prompt, 0})->rate, 7);
}

TEST(ProviderScript, a_prompts_fault_strikes_the_first_requests_only_and_each_line_counts_for_itself) {
  Script script;
  const auto fault = [&](std::string_view prompt) { return script.reply_to({"messages", "m", prompt, 0})->fault; };
  const std::string_view one = "@provider: fault=529 times=1", other = "@provider: fault=529 times=1 text=other";
  EXPECT_EQ(fault(one), Fault::status);
  EXPECT_EQ(fault(other), Fault::status);
  EXPECT_EQ(fault(one), Fault::none);
  EXPECT_EQ(fault(other), Fault::none);
}

TEST(ProviderScript, counted_lines_are_bounded_and_the_oldest_is_dropped) {
  Script script;
  const auto fault = [&](std::size_t i) {
    const std::string prompt = "@provider: fault=500 times=1 text=" + std::to_string(i);
    return script.reply_to({"messages", "m", prompt, 0})->fault;
  };
  for (std::size_t i = 0; i <= Script::kCountersMax; ++i) EXPECT_EQ(fault(i), Fault::status);
  EXPECT_EQ(fault(Script::kCountersMax), Fault::none);
  EXPECT_EQ(fault(0), Fault::status) << "dropped, so its count restarts";
}

TEST(ProviderScript, a_refusal_names_the_place) {
  EXPECT_NE(script_refusal("[[reply]]\ntext = 'a'\n[[reply]]\ncolour = 'red'\n").find("reply 2: colour=red"),
            std::string::npos);
  EXPECT_NE(script_refusal("a = \n").find("invalid TOML: line 1"), std::string::npos);
  EXPECT_NE(script_refusal("[*]\n").find("invalid TOML"), std::string::npos) << "an assert of the parser";
  EXPECT_NE(script_refusal("{").find("invalid JSON"), std::string::npos);
  EXPECT_NE(script_refusal("replies = 1").find("allowed: the table `default`"), std::string::npos);
  EXPECT_NE(script_refusal("[[reply]]\nturn = -1").find("turn"), std::string::npos);
  EXPECT_NE(script_refusal("[[reply]]\ntools = 3").find("tools: give a list"), std::string::npos);
  EXPECT_NE(script_refusal(std::string(Script::kBytesMax + 1, ' ')).find("at most"), std::string::npos);
}

TEST(ProviderScript, any_text_is_read_or_refused) {
  EXPECT_TRUE(rc::check([](const std::string& text) {
    (void)Script::parse(text);
    (void)Script::parse("{" + text);
    (void)Script::parse("[[reply]]\n" + text);
  }));
}

}  // namespace
}  // namespace stint::provider
