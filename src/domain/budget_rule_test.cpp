#include "domain/budget_rule.hpp"

#include "domain/price.hpp"

#include <gtest/gtest.h>

namespace stint::domain {
namespace {

TEST(BudgetRule, a_budget_that_can_not_be_enforced_is_refused_with_a_remedy) {
  struct Case {
    std::string_view driver;
    BudgetSpec budget;
    bool has_price, bounds_day;
    std::string_view part;  ///< of the reason; empty: it is enforced
  };
  const BudgetSpec none, tokens{.tokens = 1000}, cost{.cost_micros = 5};
  for (const Case& test : {
           Case{"claude", tokens, false, true, ""},
           Case{"claude", cost, false, true, ""},
           Case{"codex", tokens, false, false, ""},
           Case{"codex", cost, true, false, ""},
           Case{"codex", cost, false, false, "models.codex"},
           Case{"codex", none, false, true, "budget.cost_per_day"},
           Case{"codex", none, true, true, ""},
           Case{"gemini", tokens, true, false, "a token budget can't be enforced for gemini"},
           Case{"gemini", cost, true, false, "a cost budget can't be enforced for gemini"},
           Case{"gemini", none, true, true, ""},
           Case{"gemini", none, false, true, "models.gemini"},
           Case{"command", tokens, false, true, ""},
       }) {
    const auto why = why_not_held({.driver = *find_driver(test.driver),
                                   .budget = test.budget,
                                   .has_price = test.has_price,
                                   .bounds_day = test.bounds_day});
    EXPECT_EQ(why.has_value(), !test.part.empty()) << test.driver << ": " << why.value_or("");
    EXPECT_NE(why.value_or("").find(test.part), std::string::npos) << why.value_or("");
  }
}

TEST(Price, is_computed_from_the_settings) {
  Price price;
  price.input = 3'000'000;
  price.output = 15'000'000;
  EXPECT_EQ(price.of({.fresh_in = 1000, .out = 100}), 4500);
  EXPECT_EQ(price.of({.cache_read = 1000}), 3000) << "without a price of its own, cached input costs like any other";
  price.cache_read = 300'000;
  EXPECT_EQ(price.of({.cache_read = 1000}), 300);
  EXPECT_EQ(price.of({.fresh_in = 0, .out = 0}), 0);
  Price little;
  little.input = 1;
  EXPECT_EQ(little.of({.fresh_in = 1}), 1) << "what is used is never free";
  const PriceList prices{{"gpt-5", price}, {"codex", little}};
  EXPECT_EQ(price_of(prices, "gpt-5", "codex"), price);
  EXPECT_EQ(price_of(prices, "", "codex"), little);
  EXPECT_FALSE(price_of(prices, "", "gemini").known());
}

}  // namespace
}  // namespace stint::domain
