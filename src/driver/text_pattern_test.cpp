// The patterns of JSON Schema against the examples of its users, and against std::regex for generated ones: that
// engine recurses and backtracks, and is right.
#include "driver/text_pattern.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <regex>
#include <string>

namespace stint::driver {
namespace {

bool found(std::string_view pattern, std::string_view text) {
  const auto compiled = TextPattern::compile(pattern);
  EXPECT_TRUE(compiled) << pattern;
  return compiled && compiled->is_found_in(text);
}

TEST(TextPattern, finds_a_match_anywhere_unless_anchored) {
  EXPECT_TRUE(found("b+c", "aabbc"));
  EXPECT_FALSE(found("^b+c", "aabbc"));
  EXPECT_TRUE(found("^[a-z0-9][a-z0-9_-]{0,63}$", "review-2"));
  EXPECT_FALSE(found("^[a-z0-9][a-z0-9_-]{0,63}$", "Review"));
  EXPECT_TRUE(found("", "x"));
  EXPECT_TRUE(found("^$", ""));
  EXPECT_FALSE(found("[]", "x"));
  EXPECT_TRUE(found("[^]", "\n"));
}

TEST(TextPattern, knows_the_escapes_of_javascript) {
  EXPECT_TRUE(found(R"(^\d{4}-\d\d-\d\d$)", "2026-11-18"));
  EXPECT_TRUE(found(R"(^[\w.+-]+@[\w-]+(\.[\w-]+)+$)", "a.b+c@example.org"));
  EXPECT_TRUE(found(R"(\bcat\b)", "a cat!"));
  EXPECT_FALSE(found(R"(\bcat\b)", "concatenate"));
  EXPECT_TRUE(found(R"(^\x41\u00e4\u{1F600}\uD83D\uDE00\/$)", "Aä😀😀/"));
  EXPECT_TRUE(found(R"(^(?<year>\d+)(?:a|b)??$)", "2026b"));
  EXPECT_TRUE(found("^a{,2}$", "a{,2}"));
  EXPECT_TRUE(found("^[\\]\\-a]+$", "]-a"));
}

TEST(TextPattern, counts_characters_not_bytes) {
  EXPECT_TRUE(found("^.{3}$", "äö😀"));
  EXPECT_FALSE(found("^.$", "äö"));
  EXPECT_TRUE(found("^[ä-ü]+$", "äöü"));
  EXPECT_TRUE(found(".", "\xff"));  // not UTF-8: a byte counts as a character
}

TEST(TextPattern, refuses_what_needs_backtracking_and_says_where) {
  for (const char* const pattern : {"(?=a)b", "(?!a)b", "(?<=a)b", R"((a)\1)", R"(\p{L})", "(?i)a", "a**", "*a", "(a",
                                    "a)", "[a", "[b-a]", "\\", "a{2,1}", "a{1001}", R"(\u00g0)", R"(\q)", "^*"}) {
    const auto compiled = TextPattern::compile(pattern);
    ASSERT_FALSE(compiled) << pattern;
    EXPECT_NE(compiled.error().what().find("of the pattern"), std::string::npos) << compiled.error().what();
  }
}

TEST(TextPattern, is_bounded_in_size_and_time) {
  EXPECT_FALSE(TextPattern::compile(std::string(TextPattern::kPatternBytesMax + 1, 'a')));
  EXPECT_FALSE(TextPattern::compile(std::string(100, '(') + std::string(100, ')')));
  EXPECT_FALSE(TextPattern::compile("((a{100}){100}){100}"));
  EXPECT_FALSE(TextPattern::compile("(((?:){1000}){1000}){1000}"));
  // Exponential for an engine that backtracks.
  EXPECT_FALSE(found("^(a|a)*(a+)+b$", std::string(20'000, 'a')));
  EXPECT_TRUE(found("(a*)*(|b)*c", std::string(1000, 'a') + "c"));
}

/// A pattern from a small grammar, all of which both engines know.
std::string random_pattern(int depth) {
  static const std::vector<std::string> kSingles{"a",   "b",   "c",   ".", "[ab]", "[^a]",
                                                 "\\d", "\\w", "\\b", "^", "$",    "1"};
  std::string out;
  const int parts = *rc::gen::inRange(0, 4);
  for (int i = 0; i < parts; ++i) {
    const int kind = *rc::gen::inRange(0, depth > 0 ? 8 : 5);
    if (kind >= 5) {
      out += "(" + random_pattern(depth - 1) + (kind == 5 ? "|" + random_pattern(depth - 1) : "") + ")";
    } else {
      out += *rc::gen::elementOf(kSingles);
    }
    const bool is_assertion = out.ends_with('^') || out.ends_with('$') || out.ends_with("\\b");
    if (!is_assertion)
      out += *rc::gen::elementOf(std::vector<std::string>{"", "", "", "*", "+", "?", "{2}", "{1,2}", "*?"});
  }
  return out;
}

TEST(TextPatternProperty, agrees_with_an_engine_that_backtracks) {
  EXPECT_TRUE(rc::check("finds what std::regex finds", [] {
    const std::string pattern = random_pattern(2);
    const std::string text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("abc1 ")));
    RC_LOG() << pattern << "\n";
    const auto compiled = TextPattern::compile(pattern);
    RC_ASSERT(compiled);
    const std::string brief = text.substr(0, 8);
    RC_ASSERT(compiled->is_found_in(brief) == std::regex_search(brief, std::regex(pattern)));
  }));
}

TEST(TextPatternProperty, takes_any_bytes) {
  EXPECT_TRUE(rc::check("compiles or refuses", [] {
    const auto pattern =
        *rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab(){}[]|*+?^$\\-,.u1\xc3\xa4")));
    const auto compiled = TextPattern::compile(pattern);
    if (compiled) (void)compiled->is_found_in(pattern);
  }));
}

}  // namespace
}  // namespace stint::driver
