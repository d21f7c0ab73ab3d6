#include "agent/arguments.hpp"

#include <gtest/gtest.h>

namespace stint::agent {
namespace {

using Values = domain::ArgumentValues;

domain::Agent review() {
  domain::Agent agent;
  agent.name = "review";
  agent.args = {{"focus", "", false, std::nullopt},
                {"pr", "Number of the pull request", true, std::nullopt},
                {"base", "", true, std::nullopt},
                {"depth", "", false, "2"}};
  return agent;
}

Values bound(std::vector<std::string> words) {
  const auto values = bind_arguments(review(), words);
  return values ? *values : Values{{"error", {std::string(values.error().what())}}};
}

std::string refused(const std::vector<std::string>& words) {
  const auto values = bind_arguments(review(), words);
  EXPECT_FALSE(values);
  return values ? "" : std::string(values.error().what());
}

TEST(Arguments, positional_values_fill_the_required_ones_in_order_then_the_optional) {
  EXPECT_EQ(bound({"42", "main"}), (Values{{"pr", {"42"}}, {"base", {"main"}}, {"depth", {"2"}}}));
  EXPECT_EQ(bound({"42", "main", "tests"}),
            (Values{{"pr", {"42"}}, {"base", {"main"}}, {"focus", {"tests"}}, {"depth", {"2"}}}));
  EXPECT_EQ(bound({"42", "main", "tests", "9"}).at("depth"), std::vector<std::string>{"9"});
  EXPECT_EQ(usage(review()), "review PR BASE [FOCUS] [DEPTH]");
}

TEST(Arguments, named_ones_are_passed_over_by_positional_values) {
  EXPECT_EQ(bound({"pr=42", "main"}), (Values{{"pr", {"42"}}, {"base", {"main"}}, {"depth", {"2"}}}));
  EXPECT_EQ(bound({"main", "pr=42"}), bound({"pr=42", "main"}));
}

TEST(Arguments, a_repeated_key_is_a_list) {
  EXPECT_EQ(bound({"1", "b", "focus=x", "focus=y=z", "focus="}).at("focus"),
            (std::vector<std::string>{"x", "y=z", ""}));
}

TEST(Arguments, only_a_name_before_the_equals_sign_makes_a_key) {
  EXPECT_EQ(bound({"https://x?a=b", "=c"}).at("pr"), std::vector<std::string>{"https://x?a=b"});
  EXPECT_EQ(bound({"https://x?a=b", "=c"}).at("base"), std::vector<std::string>{"=c"});
}

TEST(Arguments, after_two_dashes_all_are_values) {
  EXPECT_EQ(bound({"base=main", "--", "focus=x"}), (Values{{"pr", {"focus=x"}}, {"base", {"main"}}, {"depth", {"2"}}}));
  EXPECT_EQ(bound({"--", "--", "main"}), (Values{{"pr", {"--"}}, {"base", {"main"}}, {"depth", {"2"}}}));
}

TEST(Arguments, a_missing_required_one_is_refused_with_the_usage) {
  EXPECT_EQ(refused({}),
            "the argument 'pr' (Number of the pull request) is missing. Usage: review PR BASE [FOCUS] [DEPTH]");
  EXPECT_EQ(refused({"42"}), "the argument 'base' is missing. Usage: review PR BASE [FOCUS] [DEPTH]");
  EXPECT_EQ(refused({"pr=", "x"}).find("the argument 'pr' (Number of the pull request) is empty"), 0U);
}

TEST(Arguments, an_unknown_key_is_refused_with_a_suggestion) {
  EXPECT_EQ(
      refused({"42", "main", "fokus=x"}),
      "review has no argument 'fokus'; did you mean 'focus'? If all of it is a value, write focus=fokus=x. Usage: "
      "review PR BASE [FOCUS] [DEPTH]");
  EXPECT_NE(refused({"x=1"}).find("write focus=x=1"), std::string::npos);
}

TEST(Arguments, one_value_too_many_is_refused) {
  EXPECT_EQ(refused({"1", "2", "3", "4", "5"}).find("one value too many: '5'"), 0U);
}

TEST(Arguments, number_and_size_are_bounded) {
  EXPECT_NE(refused(std::vector<std::string>(kArgumentWordsMax + 1, "focus=x")).find("at most 1000"),
            std::string::npos);
  EXPECT_NE(refused({"1", std::string(kArgumentBytesMax, 'x')}).find("at most 1048576"), std::string::npos);
}

TEST(Arguments, values_that_have_names_are_checked_alike) {
  EXPECT_TRUE(check_arguments(review(), {{"pr", {"1"}}, {"base", {"b"}}}));
  EXPECT_FALSE(check_arguments(review(), {{"pr", {"1"}}}));
  EXPECT_FALSE(check_arguments(review(), {{"pr", {"1"}}, {"base", {}}}));
  EXPECT_FALSE(check_arguments(review(), {{"pr", {"1"}}, {"base", {"b"}}, {"x", {"1"}}}));
}

}  // namespace
}  // namespace stint::agent
