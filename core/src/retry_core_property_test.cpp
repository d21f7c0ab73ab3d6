// Bounds and distribution of the jitter, and guarantees that hold for every policy, error and time.
#include "stint/retry_core.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <random>

namespace stint {
namespace {

using namespace std::chrono_literals;

// Behaviour 108. Seeded, so that it is deterministic.
TEST(JitterProperty, is_uniform_from_zero_to_the_ceiling) {
  constexpr int kSamples = 100'000;
  constexpr Duration kLongest = 8s;
  std::mt19937_64 random(20'251'115);
  std::array<int, 20> counts{};
  Duration sum{}, least = Duration::max(), most{};
  for (int i = 0; i < kSamples; ++i) {
    const Duration wait = full_jitter(kLongest, random());
    ASSERT_GE(wait, 0s);
    ASSERT_LE(wait, kLongest);
    ++counts[static_cast<std::size_t>(std::min<std::int64_t>(wait * 20 / kLongest, 19))];
    sum += wait;
    least = std::min(least, wait);
    most = std::max(most, wait);
  }
  // Each twentieth of the range is a binomial: five standard deviations of 5,000 ± 69.
  for (const int count : counts) EXPECT_NEAR(count, kSamples / 20, 345);
  EXPECT_NEAR(std::chrono::duration<double>(sum / kSamples).count(), 4.0, 0.04);
  EXPECT_LT(least, 1ms) << "full jitter begins at zero, not at half";
  EXPECT_GT(most, kLongest - 1ms);
}

RC_GTEST_PROP(JitterProperty, stays_within_any_ceiling, (std::int64_t longest, std::uint64_t random)) {
  const Duration wait = full_jitter(Duration(longest), random);
  RC_ASSERT(wait >= Duration::zero());
  RC_ASSERT(wait <= std::max(Duration(longest), Duration::zero()));
  RC_ASSERT(full_jitter(Duration(longest), 0) == Duration::zero());
  RC_ASSERT(full_jitter(Duration(longest), ~std::uint64_t{0}) == std::max(Duration(longest), Duration::zero()));
}

/// The ceiling by repeated doubling in floating point: precise enough, and simple.
RC_GTEST_PROP(RetryRuleProperty, the_ceiling_is_the_doubled_base_or_the_cap, ()) {
  const RetryPolicy policy{.base = Duration(*rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 62)),
                           .cap = Duration(*rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 62))};
  const auto i = *rc::gen::inRange<std::uint32_t>(0, 200);
  const double naive =
      std::min(static_cast<double>(policy.base.count()) * std::pow(2.0, i), static_cast<double>(policy.cap.count()));
  const double real = static_cast<double>(backoff_max(policy.backoff(), i).count());
  RC_ASSERT(std::abs(real - naive) <= naive * 1e-9 + 1);
  RC_ASSERT(backoff_max(policy.backoff(), i) <= policy.cap);
}

Error any_error() {
  const auto retry = *rc::gen::element(Retry::never, Retry::safe, Retry::unknown);
  const auto code = *rc::gen::element(Errc::cancelled, Errc::timed_out, Errc::unavailable, Errc::failed);
  Error error(code, retry);
  if (*rc::gen::arbitrary<bool>()) {
    error = std::move(error).after(Duration(*rc::gen::inRange<std::int64_t>(0, 100'000)));
  }
  return error;
}

RC_GTEST_PROP(RetryRuleProperty, decisions_satisfy_every_guarantee, ()) {
  const RetryPolicy policy{.base = Duration(*rc::gen::inRange<std::int64_t>(0, 10'000)),
                           .cap = Duration(*rc::gen::inRange<std::int64_t>(0, 100'000)),
                           .attempts_max = *rc::gen::inRange<std::uint32_t>(0, 6),
                           .idempotent = *rc::gen::arbitrary<bool>()};
  const Error error = any_error();
  const TimePoint now{Duration(*rc::gen::inRange<std::int64_t>(0, 1'000'000))};
  const bool bounded = *rc::gen::arbitrary<bool>();
  const FailedAttempt attempt{
      .number = *rc::gen::inRange<std::uint32_t>(1, 8),
      .now = now,
      .deadline = bounded ? Deadline(now + Duration(*rc::gen::inRange<std::int64_t>(-10, 60'000))) : Deadline(),
      .attempts_left = *rc::gen::inRange<std::int64_t>(0, 3),
      .random = *rc::gen::arbitrary<std::uint64_t>()};
  const RetryDecision decision = decide_retry(policy, error, attempt);
  const bool safe = error.code() != Errc::cancelled &&
                    (error.retry() == Retry::safe || (error.retry() == Retry::unknown && policy.idempotent));
  const bool attempts_left = attempt.number < policy.attempts_max && attempt.attempts_left > 0;
  const Duration asked = error.retry_after().value_or(Duration::zero());
  const bool fits = attempt.deadline.remaining(now) > asked;
  RC_ASSERT(decision.has_value() == (safe && attempts_left && fits));
  if (!decision) {
    RC_ASSERT(gave_up(error, decision.error(), attempt).code() == error.code());
    return;
  }
  RC_ASSERT(*decision >= now + asked);
  RC_ASSERT(*decision <= now + std::max(asked, backoff_max(policy.backoff(), attempt.number)));
  RC_ASSERT(*decision < attempt.deadline.when());
}

}  // namespace
}  // namespace stint
