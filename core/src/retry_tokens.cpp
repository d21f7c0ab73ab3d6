#include "stint/retry_tokens.hpp"

#include <algorithm>
#include <cmath>

namespace stint {

namespace {

std::int64_t millionths(double value, double most) noexcept {
  if (!(value > 0)) return 0;  // also NaN
  return std::llround(std::min(value, most) * 1e6);
}

}  // namespace

RetryTokens::RetryTokens(const Options& options) noexcept
    : most_(millionths(options.burst, 1e6)), per_success_(millionths(options.ratio, 1)), level_(most_) {}

std::optional<RetryTokens::Token> RetryTokens::take() noexcept {
  std::int64_t level = level_.load(std::memory_order_relaxed);
  while (level >= kOne) {
    if (level_.compare_exchange_weak(level, level - kOne, std::memory_order_relaxed)) return Token(*this);
  }
  return std::nullopt;
}

void RetryTokens::add(std::int64_t amount) noexcept {
  std::int64_t level = level_.load(std::memory_order_relaxed);
  while (level < most_) {
    const std::int64_t more = std::min(level + amount, most_);
    if (level_.compare_exchange_weak(level, more, std::memory_order_relaxed)) return;
  }
}

double RetryTokens::available() const noexcept {
  return static_cast<double>(level_.load(std::memory_order_relaxed)) / static_cast<double>(kOne);
}

}  // namespace stint
