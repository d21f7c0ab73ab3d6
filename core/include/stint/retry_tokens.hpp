/// `RetryTokens`: limits retries to a fixed share of the traffic to one upstream. One object, shared by all its
/// callers.
///
/// A bucket of `burst` tokens. A retry takes one; a success returns `ratio` of one. So retries ≤ burst + ratio ×
/// successes always holds: in an outage the callers' first attempts continue and detect recovery, while retries stop
/// after the burst. (gRPC's rule also counts down on first failures and therefore keeps half of its bucket as a
/// threshold; the bound above is the same with half the constants.) Thread-safe and exact. Must outlive the tokens
/// taken from it.
#pragma once

#include "stint/detail/compiler.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

namespace stint {

class RetryTokens {
 public:
  struct Options {
    double burst = 10;   ///< retries at once after a healthy period
    double ratio = 0.1;  ///< retries per success in the long run
  };
  /// The right to one retry. Returned when destroyed, unless it was spent.
  class [[nodiscard]] Token {
   public:
    Token(Token&& other) noexcept : tokens_(std::exchange(other.tokens_, nullptr)) {}
    Token& operator=(Token&& other) noexcept {
      std::swap(tokens_, other.tokens_);
      return *this;
    }
    ~Token() {
      if (tokens_ != nullptr) tokens_->add(kOne);
    }
    void spend() noexcept { tokens_ = nullptr; }

   private:
    friend class RetryTokens;
    explicit Token(RetryTokens& tokens) noexcept : tokens_(&tokens) {}
    RetryTokens* tokens_;
  };

  RetryTokens() noexcept : RetryTokens(Options()) {}
  /// Values are clamped: burst 0 … 1,000,000, ratio 0 … 1.
  explicit RetryTokens(const Options& options) noexcept;
  RetryTokens(const RetryTokens&) = delete;
  RetryTokens& operator=(const RetryTokens&) = delete;

  [[nodiscard]] std::optional<Token> take() noexcept;
  void succeeded() noexcept { add(per_success_); }
  /// In tokens, including fractions.
  [[nodiscard]] double available() const noexcept;

 private:
  static constexpr std::int64_t kOne = 1'000'000;  // counted in millionths, since integers add up exactly
  void add(std::int64_t amount) noexcept;

  const std::int64_t most_;
  const std::int64_t per_success_;
  std::atomic<std::int64_t> level_;
};

}  // namespace stint
