#include "model/call_budget.hpp"

#include <gtest/gtest.h>

namespace stint::model {
namespace {

constexpr Price kDear{.input = 1'000'000, .output = 10'000'000};  // a micro for each token in, ten for each out

TEST(CallBudget, without_bounds_all_that_is_asked_for_is_reserved) {
  const auto plan = plan_call({.request_bytes = 400, .output_tokens_max = 1000, .output_tokens_min = 64}, kDear, {});
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->is_lowered);
  EXPECT_EQ(plan->amount.tokens, 1101);
  EXPECT_EQ(plan->amount.cost_micros, 101 + 10'000);
}

TEST(CallBudget, output_is_lowered_to_the_scarcer_of_tokens_and_cost) {
  const CallNeed need{.request_bytes = 400, .output_tokens_max = 1000, .output_tokens_min = 64};
  EXPECT_EQ(plan_call(need, kDear, {.tokens = 301})->estimate.output_tokens, 200);
  EXPECT_EQ(plan_call(need, kDear, {.cost_micros = 1101})->estimate.output_tokens, 100);
  EXPECT_EQ(plan_call(need, kDear, {.tokens = 301, .cost_micros = 1101})->estimate.output_tokens, 100);
  EXPECT_TRUE(plan_call(need, kDear, {.tokens = 301})->is_lowered);
  EXPECT_EQ(plan_call(need, Price(), {.cost_micros = 0})->estimate.output_tokens, 1000) << "without a price";
}

TEST(CallBudget, what_does_not_fit_is_refused_by_name) {
  const CallNeed need{.request_bytes = 400, .output_tokens_max = 1000, .output_tokens_min = 64};
  const auto tokens = plan_call(need, kDear, {.tokens = 164});
  ASSERT_FALSE(tokens);
  EXPECT_EQ(tokens.error(), Errc::exhausted);
  EXPECT_NE(tokens.error().what().find("tokens"), std::string_view::npos);
  const auto cost = plan_call(need, kDear, {.cost_micros = 700});
  ASSERT_FALSE(cost);
  EXPECT_NE(cost.error().what().find("cost"), std::string_view::npos);
  EXPECT_TRUE(plan_call({.request_bytes = 4, .output_tokens_max = 5, .output_tokens_min = 64}, kDear, {.tokens = 10}))
      << "a short answer is enough";
}

TEST(CallBudget, a_plan_always_fits_into_what_is_left) {
  for (std::int64_t left = 0; left < 3000; left += 7) {
    for (const Price price : {kDear, Price{.input = 333'333, .output = 777'777}}) {
      const Allowance allowance{.tokens = left, .cost_micros = left * 3};
      const auto plan = plan_call({.request_bytes = 400, .output_tokens_max = 900}, price, allowance);
      if (!plan) continue;
      EXPECT_LE(plan->amount.tokens, allowance.tokens);
      EXPECT_LE(plan->amount.cost_micros, allowance.cost_micros);
    }
  }
}

TEST(CallBudget, usage_within_the_reservation_or_the_rest_is_not_too_much) {
  const Spend reserved{.tokens = 100};
  EXPECT_FALSE(exceeds({.out = 100}, reserved, {.tokens = 0}));
  EXPECT_TRUE(exceeds({.out = 101}, reserved, {.tokens = 0}));
  EXPECT_FALSE(exceeds({.out = 150}, reserved, {.tokens = 50}));
  EXPECT_FALSE(exceeds({.out = 1'000'000}, reserved, {}));
  EXPECT_TRUE(exceeds({.cost_micros = 11}, {.cost_micros = 5}, {.cost_micros = 5}));
}

}  // namespace
}  // namespace stint::model
