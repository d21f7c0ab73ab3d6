#include "stint/rate_core.hpp"

#include <gtest/gtest.h>

#include <string>

namespace stint {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{1000h};

RateAmount tokens(std::int64_t input, std::int64_t output = 0) {
  return {.requests = 1, .input_tokens = input, .output_tokens = output};
}

TEST(RateBucket, admits_a_burst_and_then_the_rate) {
  RateBucket bucket(60, 10s);
  TimePoint now = kStart;
  for (int i = 0; i < 10; ++i) {
    ASSERT_LE(bucket.ready_at(1, now), now) << i;
    bucket.take(1, now);
  }
  for (int i = 1; i <= 5; ++i) {
    ASSERT_EQ(bucket.ready_at(1, now), kStart + i * 1s);
    now = kStart + i * 1s;
    bucket.take(1, now);
  }
}

TEST(RateBucket, accumulates_no_more_than_the_burst) {
  RateBucket bucket(60, 10s);
  bucket.take(1, kStart);
  EXPECT_EQ(bucket.available(kStart), 9);
  EXPECT_EQ(bucket.available(kStart + 1h), 10);
  EXPECT_EQ(bucket.ready_at(10, kStart + 1h), TimePoint::min());
}

TEST(RateBucket, a_request_larger_than_the_burst_waits_for_a_full_bucket_and_leaves_a_debt) {
  RateBucket bucket(60, 10s);
  bucket.take(1, kStart);
  EXPECT_EQ(bucket.ready_at(30, kStart), kStart + 1s);
  bucket.take(30, kStart + 1s);
  EXPECT_EQ(bucket.available(kStart + 1s), -20);
  EXPECT_EQ(bucket.ready_at(1, kStart + 1s), kStart + 1s + 21s);
}

TEST(RateBucket, always_holds_one_unit) {
  RateBucket bucket(1, 10s);
  EXPECT_EQ(bucket.available(kStart), 1);
  bucket.take(1, kStart);
  EXPECT_EQ(bucket.ready_at(1, kStart), kStart + 1min);
}

TEST(RateBucket, rounds_so_that_a_minute_is_never_shortened) {
  RateBucket bucket(7, 0s);
  TimePoint now = kStart;
  for (int i = 0; i < 8; ++i) {
    now = std::max(now, bucket.ready_at(1, now));
    bucket.take(1, now);
  }
  EXPECT_GE(now, kStart + 1min);
}

TEST(RateBucket, returns_unused_units) {
  RateBucket bucket(60, 10s);
  bucket.take(8, kStart);
  bucket.give_back(5, kStart);
  EXPECT_EQ(bucket.available(kStart), 7);
}

TEST(RateBucket, does_not_return_units_that_have_already_refilled) {
  RateBucket bucket(60, 10s);
  bucket.take(8, kStart);
  bucket.take(10, kStart + 1min);  // found it full: without the first take it would be just as empty now
  bucket.give_back(8, kStart);
  EXPECT_EQ(bucket.available(kStart + 1min), 0);
  bucket.give_back(4, kStart + 1min);
  EXPECT_EQ(bucket.available(kStart + 1min), 4);
}

TEST(RateBucket, a_charge_applies_from_the_next_access) {
  RateBucket bucket(60, 10s);
  bucket.take(1, kStart);
  bucket.charge(15);
  EXPECT_EQ(bucket.available(kStart + 1h), -5) << "a full bucket does not swallow it";
  bucket.charge(std::int64_t{1} << 60);
  EXPECT_EQ(bucket.ready_at(1, kStart + 1h), kStart + 1h + 6s + 1h) << "nonsense is a debt of an hour at most";
}

TEST(RateBucket, a_report_lowers_and_never_raises) {
  RateBucket bucket(60, 10s);
  bucket.report({.remaining = 4}, kStart);
  EXPECT_EQ(bucket.available(kStart), 4);
  bucket.report({.remaining = 60}, kStart);
  EXPECT_EQ(bucket.available(kStart), 4);
  bucket.report({.remaining = -1}, kStart);
  EXPECT_EQ(bucket.available(kStart), 4);
  bucket.report({.remaining = 0, .reset = 60s}, kStart);
  EXPECT_EQ(bucket.available(kStart), 0);
  EXPECT_EQ(bucket.ready_at(1, kStart), kStart + 1s) << "a minute's reset is the normal flow";
}

TEST(RateBucket, an_exhausted_window_longer_than_a_minute_closes_the_bucket) {
  RateBucket bucket(60, 10s);
  bucket.report({.remaining = 0, .reset = 11min}, kStart);
  EXPECT_EQ(bucket.ready_at(1, kStart), kStart + 10min + 1s);
}

TEST(RateBucket, a_new_limit_keeps_the_debt) {
  RateBucket bucket(60, 10s);
  bucket.take(10, kStart);
  bucket.set_limit(600, kStart);
  EXPECT_EQ(bucket.available(kStart), 90) << "ten of the hundred that ten seconds are now";
  bucket.set_limit(60, kStart);
  EXPECT_EQ(bucket.available(kStart), 0);
}

TEST(RateBucket, without_a_limit_nothing_waits) {
  RateBucket bucket;
  bucket.take(1'000'000, kStart);
  bucket.charge(1'000'000);
  bucket.give_back(1, kStart);
  bucket.report({.remaining = 0, .reset = 1h}, kStart);
  EXPECT_LE(bucket.ready_at(1'000'000, kStart), kStart);
}

TEST(RateCore, admits_requests_and_tokens_together_or_not_at_all) {
  RateCore rate({.requests_per_minute = 60, .tokens_per_minute = 6000});
  EXPECT_TRUE(rate.take(tokens(600, 400), kStart));
  EXPECT_FALSE(rate.take(tokens(1), kStart));
  EXPECT_EQ(rate.available(RateKind::requests, kStart), 9) << "the refused one took no request";
  EXPECT_EQ(rate.ready_at(tokens(50, 50), kStart), kStart + 1s);
  EXPECT_EQ(rate.waits_for(tokens(1), kStart), "tokens per minute");
}

TEST(RateCore, input_and_output_have_limits_of_their_own) {
  RateCore rate({.input_tokens_per_minute = 6000, .output_tokens_per_minute = 600});
  EXPECT_TRUE(rate.take(tokens(100, 100), kStart));
  EXPECT_EQ(rate.waits_for(tokens(100, 1), kStart), "output tokens per minute");
  EXPECT_TRUE(rate.take(tokens(900, 0), kStart));
  EXPECT_EQ(rate.waits_for(tokens(100, 0), kStart), "input tokens per minute");
}

TEST(RateCore, an_estimate_is_settled_either_way) {
  RateCore rate({.requests_per_minute = 60, .tokens_per_minute = 6000});
  ASSERT_TRUE(rate.take(tokens(500, 500), kStart));
  rate.settle(tokens(500, 500), tokens(500, 100), kStart);
  EXPECT_EQ(rate.available(RateKind::tokens, kStart), 400);
  EXPECT_EQ(rate.available(RateKind::requests, kStart), 9) << "the request itself was used";
  rate.settle(tokens(500, 100), tokens(500, 700), kStart);
  EXPECT_EQ(rate.available(RateKind::tokens, kStart), -200);
  rate.settle(tokens(10), tokens(-5), kStart);
  EXPECT_EQ(rate.available(RateKind::tokens, kStart), -190) << "negative is zero";
}

// Behaviour 100.
TEST(RateCore, a_returned_amount_leaves_no_trace) {
  RateCore rate({.requests_per_minute = 60, .tokens_per_minute = 6000});
  rate.pause_until(kStart);
  ASSERT_TRUE(rate.take(tokens(500), kStart));
  rate.give_back(tokens(500), kStart);
  EXPECT_EQ(rate.available(RateKind::requests, kStart), 10);
  EXPECT_EQ(rate.available(RateKind::tokens, kStart), 1000);
  EXPECT_LE(rate.ready_at(tokens(1), kStart), kStart) << "nor did it use up a place in the ramp";
}

TEST(RateCore, an_impossible_amount_is_refused_at_once) {
  RateCore rate({.tokens_per_minute = 6000});
  EXPECT_TRUE(rate.check(tokens(6000)));
  const auto refused = rate.check(tokens(6000, 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::invalid);
  EXPECT_EQ(refused.error().what(), "6001 at once can never be admitted: the limit is 6000 tokens per minute");
  EXPECT_EQ(rate.check(tokens(-1)).error(), Errc::invalid);
  EXPECT_EQ(rate.check(tokens(INT64_MAX, INT64_MAX)).error(), Errc::invalid);
}

TEST(RateCore, a_pause_blocks_all_callers_and_ends_with_a_ramp) {
  RateCore rate({.ramp_step = 1s, .ramp_steps = 3});
  rate.pause_until(kStart + 7s);
  rate.pause_until(kStart + 5s);  // never shortens
  EXPECT_EQ(rate.ready_at({}, kStart), kStart + 7s);
  EXPECT_EQ(rate.waits_for({}, kStart), "the pause");
  TimePoint now = kStart + 7s;
  std::string admitted;
  for (int i = 0; i < 12; ++i) {
    now = std::max(now, rate.ready_at({}, now));
    ASSERT_TRUE(rate.take({}, now));
    admitted += std::to_string((now - kStart - 7s) / 1s);
  }
  EXPECT_EQ(admitted, "011222233333") << "one, two, four, then all";
}

TEST(RateCore, an_endless_pause_does_not_overflow) {
  RateCore rate({.ramp_step = Duration::max(), .ramp_steps = INT32_MAX});
  rate.pause_until(TimePoint::max());
  EXPECT_GT(rate.ready_at({}, kStart), kStart + 24h * 365 * 100);
  EXPECT_TRUE(rate.take({}, TimePoint::max()));
  EXPECT_GT(rate.ready_at({}, kStart), kStart + 24h * 365 * 100);
}

TEST(RateCore, the_lower_of_configured_and_reported_limit_applies) {
  RateCore rate({.requests_per_minute = 60});
  rate.correct(RateKind::requests, {.limit = 4000, .remaining = 3999}, kStart);
  EXPECT_EQ(rate.per_minute(RateKind::requests), 60);
  rate.correct(RateKind::requests, {.limit = 30}, kStart);
  EXPECT_EQ(rate.per_minute(RateKind::requests), 30);
  rate.correct(RateKind::requests, {.limit = 50}, kStart);
  EXPECT_EQ(rate.per_minute(RateKind::requests), 50) << "it was raised again";
  rate.correct(RateKind::tokens, {.limit = 6000, .remaining = 100}, kStart);
  EXPECT_EQ(rate.per_minute(RateKind::tokens), 6000) << "learned";
  EXPECT_EQ(rate.available(RateKind::tokens, kStart), 100);
}

TEST(RateCore, placeholders_are_ignored) {
  RateCore rate({.requests_per_minute = 60});
  rate.correct(RateKind::requests, {.limit = 0, .remaining = 0, .reset = 1h}, kStart);
  rate.correct(RateKind::requests, {.limit = -1, .remaining = 0}, kStart);
  EXPECT_EQ(rate.available(RateKind::requests, kStart), 10);
}

}  // namespace
}  // namespace stint
