#include "store/brief_text.hpp"

#include <gtest/gtest.h>

namespace stint::store {
namespace {

TEST(BriefText, a_short_text_stays_as_it_is) {
  EXPECT_EQ(brief_text("{}", "title", 2), "{}");
  EXPECT_EQ(brief_text("no JSON", "title", 100), "no JSON");
  EXPECT_EQ(brief_text("no JSON", "title", 0), "no JSON") << "no bound";
}

TEST(BriefText, a_long_text_is_reduced_to_one_member) {
  const std::string big(1000, 'x');
  EXPECT_EQ(brief_text(R"({"prompt":")" + big + R"(","title":"a \"b\", {c}"})", "title", 10),
            R"({"title":"a \"b\", {c}"})");
  EXPECT_EQ(brief_text(R"( { "args" : {"title":["}",")" + big + R"("]} , "title" : "t" } )", "title", 10),
            R"({"title": "t" })");
  EXPECT_EQ(brief_text(R"({"usage":{"a":[1,{"b":2}]},"text":")" + big + R"("})", "usage", 10),
            R"({"usage":{"a":[1,{"b":2}]}})");
}

TEST(BriefText, a_long_text_without_the_member_becomes_an_empty_object) {
  const std::string big(1000, 'x');
  for (const std::string& text :
       {R"({"prompt":")" + big + R"("})", "[\"" + big + "\"]", big, "{" + big, "{\"" + big, R"({"a")" + big,
        R"({"a":")" + big, R"({"a":)" + std::string(1000, '['), std::string(1000, '{'), std::string(1000, ' ')}) {
    EXPECT_EQ(brief_text(text, "title", 10), "{}") << text.substr(0, 20);
  }
}

}  // namespace
}  // namespace stint::store
