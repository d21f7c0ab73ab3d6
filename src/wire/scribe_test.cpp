// What the store keeps of a run's wish comes back as it was written.
#include "wire/scribe.hpp"

#include <gtest/gtest.h>

namespace stint::wire {
namespace {

TEST(Scribe, a_wish_comes_back_as_it_was_written) {
  domain::RunInput input;
  input.args["text"] = {"a \"b\""};
  input.args["several"] = {"a", "b \"c\"", ""};
  input.args["none"] = {};
  input.prompt = "p";
  input.driver = "claude";
  input.model = "opus";
  input.program = "/bin/x";
  input.title = "t";
  input.directory = "/d";
  input.retry_of = "abcdefghijkl";
  input.trace = "0123";
  input.budget.tokens = 7;
  input.priority = -3;
  input.budgets_above.push_back({"head", {.tokens = 100, .money_micros = 5}});
  input.budgets_above.push_back({"parent", {.money_micros = 3}});
  const Scribe scribe;
  const auto read = scribe.read_input(scribe.write(input));
  ASSERT_TRUE(read);
  EXPECT_EQ(scribe.write(*read), scribe.write(input));
  EXPECT_EQ(read->args, input.args);
  EXPECT_EQ(read->budget.tokens, 7);
  EXPECT_EQ(read->directory, "/d");
  EXPECT_EQ(read->priority, -3);
  ASSERT_EQ(read->budgets_above.size(), 2U);
  EXPECT_EQ(read->budgets_above[0].run, "head");
  EXPECT_EQ(read->budgets_above[0].budget, input.budgets_above[0].budget);
  EXPECT_EQ(read->budgets_above[1].budget, input.budgets_above[1].budget);
}

TEST(Scribe, a_budget_that_is_none_is_refused) {
  const Scribe scribe;
  EXPECT_FALSE(scribe.read_input(R"({"args":{},"budgets_above":[{"run":"x"}]})"));
  EXPECT_FALSE(scribe.read_input(R"({"args":{},"budgets_above":["x"]})"));
}

}  // namespace
}  // namespace stint::wire
