#include "store/search_text.hpp"

#include <gtest/gtest.h>

namespace stint::store {
namespace {

TEST(SearchText, has_agent_title_arguments_and_prompt) {
  const std::string text =
      search_text("Review", R"({"args":{"pr":"7 Ä","files":["A.cpp","b.cpp"]},"prompt":"Do IT","title":"PR 7"})");
  EXPECT_EQ(text, "review\npr 7\n7 Ä\na.cpp\nb.cpp\ndo it");
}

TEST(SearchText, has_no_names_of_members_and_nothing_else) {
  const std::string text = search_text("a", R"({"args":{"secret_name":"v"},"trace":"0123","budget":{"tokens":5}})");
  EXPECT_EQ(text, "a\nv");
}

TEST(SearchText, removes_escapes_and_control_characters) {
  EXPECT_EQ(search_text("a", R"({"title":"say \"hi\"\n\u0000\\ \u00e9"})"), "a\nsay \"hi\"  \\ é");
}

TEST(SearchText, ends_at_its_bound_between_two_characters) {
  std::string title;
  while (title.size() < 2 * kSearchTextMax) title += "ü";
  const std::string text = search_text("ab", R"({"title":")" + title + "\"}");
  EXPECT_LE(text.size(), kSearchTextMax);
  EXPECT_GT(text.size(), kSearchTextMax - 4);
  EXPECT_TRUE(text.ends_with("ü"));
}

TEST(SearchText, accepts_what_is_not_the_expected_json) {
  for (const char* const input :
       {"", "[1]", "{", R"({"title":)", R"({"title":"x)", R"({"title":"x\)", R"({"title":"\u)", "x"}) {
    EXPECT_TRUE(search_text("a", input).starts_with("a")) << input;
  }
}

TEST(SearchText, folds_letters_of_ascii_only) {
  EXPECT_EQ(fold_search("AbZ\tÄß%_"), "abz Äß%_");
  EXPECT_EQ(lower_ascii("AbZ\tÄ"), "abz\tÄ");
}

}  // namespace
}  // namespace stint::store
