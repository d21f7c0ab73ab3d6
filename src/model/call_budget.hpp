/// What a model call may use of a run's budget, decided before it is sent: the estimate that is reserved, and the most
/// output that fits. Pure.
#pragma once

#include "domain/price.hpp"
#include "model/upstream.hpp"
#include "stint/budget.hpp"

#include <cstddef>
#include <cstdint>

namespace stint::model {

/// Input tokens of a request, from its bytes: about four a token, JSON included. Too much rather than too little.
[[nodiscard]] std::int64_t estimated_tokens(std::size_t bytes) noexcept;

/// What is reserved for one attempt of a call.
struct CallPlan {
  CallEstimate estimate;
  Spend amount;
  bool is_lowered = false;  ///< less output than asked for fits
};

struct CallNeed {
  std::size_t request_bytes = 0;
  std::int64_t output_tokens_max = 0;
  std::int64_t output_tokens_min = 0;  ///< an answer that is cut before this is not worth its cost
};

/// Errc::exhausted: not even the least output fits into what is left.
[[nodiscard]] Result<CallPlan> plan_call(const CallNeed& need, const Price& price, const Allowance& left);

/// Usage as an amount of a budget, with its cost.
[[nodiscard]] Usage priced(Usage usage, const Price& price) noexcept;
[[nodiscard]] Spend spend_of(const Usage& usage) noexcept;
/// Whether usage has passed what was reserved and what is left besides.
[[nodiscard]] bool exceeds(const Usage& usage, const Spend& reserved, const Allowance& left) noexcept;

}  // namespace stint::model
