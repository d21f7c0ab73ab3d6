#include "model/call_budget.hpp"

#include <algorithm>
#include <string>

namespace stint::model {
namespace {

constexpr std::int64_t kRequestBytesPerToken = 4;
constexpr double kTokensPerPrice = 1e6;

std::int64_t sum_up_to_max(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? Allowance::kUnlimited : sum;
}

/// How many output tokens `micros` buy.
std::int64_t bought(std::int64_t micros, const Price& price) noexcept {
  if (price.output <= 0) return Allowance::kUnlimited;
  const double tokens = static_cast<double>(micros) * kTokensPerPrice / static_cast<double>(price.output);
  return tokens >= static_cast<double>(Budget::kAmountMax) ? Budget::kAmountMax : static_cast<std::int64_t>(tokens);
}

}  // namespace

std::int64_t estimated_tokens(std::size_t bytes) noexcept {
  return static_cast<std::int64_t>(bytes) / kRequestBytesPerToken + 1;
}

Usage priced(Usage usage, const Price& price) noexcept {
  if (usage.cost_micros == 0) usage.cost_micros = price.of(usage);
  return usage;
}

Spend spend_of(const Usage& usage) noexcept {
  return {.attempts = 0, .tokens = usage.tokens(), .cost_micros = usage.cost_micros};
}

Result<CallPlan> plan_call(const CallNeed& need, const Price& price, const Allowance& left) {
  CallPlan plan;
  plan.estimate.input_tokens = estimated_tokens(need.request_bytes);
  const std::int64_t input_cost = priced({.fresh_in = plan.estimate.input_tokens}, price).cost_micros;
  std::int64_t output = need.output_tokens_max;
  const char* scarce = "tokens";
  if (left.tokens != Allowance::kUnlimited) output = std::min(output, left.tokens - plan.estimate.input_tokens);
  if (left.cost_micros != Allowance::kUnlimited && price.known()) {
    const std::int64_t affordable = left.cost_micros < input_cost ? -1 : bought(left.cost_micros - input_cost, price);
    if (affordable < output) scarce = "cost";
    output = std::min(output, affordable);
  }
  if (output < std::min(need.output_tokens_min, need.output_tokens_max) || output <= 0) {
    return fail(Errc::exhausted, std::string("the budget's ") + scarce + " left don't fit a call with about " +
                                     std::to_string(plan.estimate.input_tokens) + " input tokens: not sent");
  }
  plan.is_lowered = output < need.output_tokens_max;
  plan.estimate.output_tokens = output;
  Usage most = priced({.fresh_in = plan.estimate.input_tokens, .out = output}, price);
  // The two parts of the cost are rounded up together: one micro may be missing.
  if (left.cost_micros != Allowance::kUnlimited) most.cost_micros = std::min(most.cost_micros, left.cost_micros);
  plan.amount = spend_of(most);
  return plan;
}

bool exceeds(const Usage& usage, const Spend& reserved, const Allowance& left) noexcept {
  return usage.tokens() > sum_up_to_max(reserved.tokens, left.tokens) ||
         usage.cost_micros > sum_up_to_max(reserved.cost_micros, left.cost_micros);
}

}  // namespace stint::model
