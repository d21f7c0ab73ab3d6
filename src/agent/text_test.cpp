#include "agent/text.hpp"

#include <gtest/gtest.h>

#include <array>

namespace stint::agent {
namespace {

TEST(Text, the_closest_word_is_near_enough_or_none) {
  constexpr std::array<std::string_view, 4> kWords{"max_concurrency", "model", "next", "args"};
  EXPECT_EQ(closest("max_concurency", kWords), "max_concurrency");
  EXPECT_EQ(closest("modle", kWords), "model");
  EXPECT_EQ(closest("arg", kWords), "args");
  EXPECT_EQ(closest("frobnicate", kWords), std::nullopt);
  EXPECT_EQ(closest("xy", kWords), std::nullopt);
  EXPECT_EQ(closest("", kWords), std::nullopt);
  EXPECT_EQ(edit_distance("abc", "acb"), 1U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance(std::string(1000, 'a'), std::string(1000, 'a')), 0U);
}

TEST(Text, keys_of_every_case_are_one) {
  for (const char* const key : {"maxTurns", "max_turns", "max-turns", "MaxTurns", "max_Turns"})
    EXPECT_EQ(snake_case(key), "max_turns");
  EXPECT_EQ(snake_case("mcpServers"), "mcp_servers");
  EXPECT_EQ(snake_case("timeoutMS"), "timeout_ms");
}

TEST(Text, utf8_is_checked_strictly) {
  EXPECT_EQ(utf8_error("aä€😀"), std::nullopt);
  EXPECT_EQ(utf8_error("a\xff"), 1U);
  EXPECT_EQ(utf8_error("\xC0\x80"), 0U);          // overlong
  EXPECT_EQ(utf8_error("\xED\xA0\x80"), 0U);      // surrogate
  EXPECT_EQ(utf8_error("\xF4\x90\x80\x80"), 0U);  // beyond Unicode
  EXPECT_EQ(utf8_error("x\xE2\x82"), 1U);         // cut off
  for (std::size_t at = 0; at < 40; ++at) {
    std::string text(40, 'x');
    text[at] = '\xff';
    EXPECT_EQ(utf8_error(text), at);
    text.replace(at, 1, "€");
    EXPECT_EQ(utf8_error(text), std::nullopt);
  }
}

TEST(Text, commas_within_parentheses_do_not_split) {
  EXPECT_EQ(split_commas("Read, Bash(git log:*, git diff:*),Task(a(b,c))"),
            (std::vector<std::string>{"Read", "Bash(git log:*, git diff:*)", "Task(a(b,c))"}));
  EXPECT_EQ(split_commas(" , ,"), std::vector<std::string>());
  EXPECT_EQ(split_commas("a) , b"), (std::vector<std::string>{"a)", "b"}));
  EXPECT_EQ(split_commas("a(, b"), std::vector<std::string>{"a(, b"});
}

TEST(Text, excerpts_are_short_and_whole_characters) {
  EXPECT_EQ(excerpt("a\nb"), "a b");
  EXPECT_EQ(excerpt("äää", 3), "ä…");
  EXPECT_EQ(excerpt(std::string(100, 'x')).size(), 40 + std::string_view("…").size());
}

}  // namespace
}  // namespace stint::agent
