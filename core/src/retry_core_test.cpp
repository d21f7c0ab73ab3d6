#include "stint/retry_core.hpp"

#include <gtest/gtest.h>

#include <string>

namespace stint {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kNow{100h};
constexpr std::uint64_t kHighest = ~std::uint64_t{0};
constexpr RetryPolicy kRetryPolicy{.base = 500ms, .cap = 8s, .attempts_max = 10};

Error unavailable() { return {Errc::unavailable, Retry::safe, "connection refused"}; }

TEST(RetryRule, waits_full_jitter_of_a_doubling_ceiling_from_the_first_on) {
  for (const auto& [number, ceiling] :
       {std::pair(1u, 1000ms), {2u, 2000ms}, {3u, 4000ms}, {4u, 8000ms}, {5u, 8000ms}, {9u, 8000ms}}) {
    EXPECT_EQ(decide_retry(kRetryPolicy, unavailable(), {.number = number, .now = kNow, .random = 0}), kNow);
    EXPECT_EQ(decide_retry(kRetryPolicy, unavailable(), {.number = number, .now = kNow, .random = kHighest}),
              kNow + ceiling);
  }
}

TEST(RetryRule, never_retries_before_the_servers_delay) {
  const Error error = unavailable().after(20s);
  EXPECT_EQ(decide_retry(kRetryPolicy, error, {.now = kNow, .random = 0}), kNow + 20s)
      << "the cap does not apply to it";
  const Error soon = unavailable().after(100ms);
  EXPECT_EQ(decide_retry(kRetryPolicy, soon, {.now = kNow, .random = kHighest}), kNow + 1s)
      << "nor does it shorten jitter";
}

// Behaviour 103.
TEST(RetryRule, a_back_off_is_clipped_to_the_remaining_time) {
  const FailedAttempt attempt{.number = 4, .now = kNow, .deadline = Deadline(kNow + 1s), .random = kHighest};
  const RetryDecision decision = decide_retry(kRetryPolicy, unavailable(), attempt);
  ASSERT_TRUE(decision);
  EXPECT_LT(*decision, kNow + 1s) << "an attempt at the deadline is too late";
  EXPECT_GT(*decision, kNow + 999ms);
}

// Behaviour 106: longer than the deadline.
TEST(RetryRule, a_server_delay_beyond_the_deadline_fails_at_once_and_is_reported) {
  const FailedAttempt attempt{.number = 2, .now = kNow, .deadline = Deadline(kNow + 4s)};
  Error error = unavailable().after(30s);
  const RetryDecision decision = decide_retry(kRetryPolicy, error, attempt);
  ASSERT_FALSE(decision);
  EXPECT_EQ(decision.error(), GiveUp::no_time);
  const Error last = gave_up(std::move(error), decision.error(), attempt);
  EXPECT_EQ(last.describe(),
            "gave up after 2 attempts, 4.0 s are left, and the server asked to wait 30.0 s: connection refused");
  EXPECT_EQ(last.retry_after(), 30s) << "the caller may know what to do with it";
}

TEST(RetryRule, a_server_delay_up_to_the_deadline_is_too_late) {
  const Error error = unavailable().after(4s);
  const auto decide = [&](Duration left) {
    return decide_retry(kRetryPolicy, error, {.now = kNow, .deadline = Deadline(kNow + left)});
  };
  EXPECT_EQ(decide(4s), std::unexpected(GiveUp::no_time));
  EXPECT_EQ(decide(4s + 1ns), kNow + 4s);
}

TEST(RetryRule, a_passed_deadline_ends_the_retries) {
  EXPECT_EQ(decide_retry(kRetryPolicy, unavailable(), {.now = kNow, .deadline = Deadline(kNow)}),
            std::unexpected(GiveUp::no_time));
}

// Behaviour 109.
TEST(RetryRule, powers_of_two_do_not_overflow) {
  RetryPolicy policy = kRetryPolicy;
  for (std::uint32_t i = 5; i < 70; ++i) EXPECT_EQ(backoff_max(policy.backoff(), i), 8s);
  EXPECT_EQ(backoff_max(policy.backoff(), ~std::uint32_t{0}), 8s);
  policy.cap = Duration::max();
  EXPECT_EQ(backoff_max(policy.backoff(), 1000), Duration::max());
  EXPECT_EQ(backoff_max({.base = 1ns, .cap = Duration::max()}, 62), Duration(std::int64_t{1} << 62));
  EXPECT_EQ(backoff_max({.base = 1ns, .cap = Duration::max()}, 63), Duration::max());
  EXPECT_EQ(backoff_max({.base = 0ns, .cap = 8s}, 1000), 0s);
  EXPECT_EQ(backoff_max({.base = -1s, .cap = -1s}, 3), 0s);
}

TEST(RetryRule, an_endless_delay_does_not_overflow) {
  const Error error = unavailable().after(Duration::max());
  EXPECT_EQ(decide_retry(kRetryPolicy, error, {.now = kNow}), std::unexpected(GiveUp::no_time));
  const Error long_wait = unavailable().after(Duration::max() - 1ns);
  EXPECT_EQ(decide_retry(kRetryPolicy, long_wait, {.now = kNow}), TimePoint::max());
}

// Behaviour 105.
TEST(RetryRule, cancelled_is_never_repeated) {
  const Error cancelled(Errc::cancelled, Retry::safe, "stopped");
  RetryPolicy policy = kRetryPolicy;
  policy.idempotent = true;
  EXPECT_EQ(decide_retry(policy, cancelled, {.now = kNow}), std::unexpected(GiveUp::not_repeatable));
}

TEST(RetryRule, only_errors_marked_safe_are_repeated) {
  RetryPolicy policy = kRetryPolicy;
  const auto decide = [&](Retry retry) {
    return decide_retry(policy, Error(Errc::failed, retry), {.now = kNow}).has_value();
  };
  EXPECT_FALSE(decide_retry(policy, Error(Errc::failed, "unmarked"), {.now = kNow}));
  EXPECT_FALSE(decide(Retry::never));
  EXPECT_FALSE(decide(Retry::unknown));
  EXPECT_TRUE(decide(Retry::safe));
  policy.idempotent = true;
  EXPECT_FALSE(decide(Retry::never));
  EXPECT_TRUE(decide(Retry::unknown));
}

TEST(RetryRule, attempts_are_bounded_by_the_policy_and_the_budget) {
  RetryPolicy policy = kRetryPolicy;
  policy.attempts_max = 3;
  EXPECT_TRUE(decide_retry(policy, unavailable(), {.number = 2, .now = kNow}));
  EXPECT_EQ(decide_retry(policy, unavailable(), {.number = 3, .now = kNow}), std::unexpected(GiveUp::no_attempts));
  EXPECT_EQ(decide_retry(policy, unavailable(), {.number = 1, .now = kNow, .attempts_left = 0}),
            std::unexpected(GiveUp::no_attempts));
}

// Behaviour 110.
TEST(RetryRule, giving_up_keeps_the_last_real_error) {
  Error real = Error(Errc::conflict, Retry::unknown, "row changed").because(Error(Errc::failed, "version 7"));
  const Error last = gave_up(std::move(real), GiveUp::no_attempts, {.number = 3, .now = kNow});
  EXPECT_EQ(last.code(), Errc::conflict);
  EXPECT_EQ(last.retry(), Retry::unknown);
  EXPECT_EQ(last.retry_after(), std::nullopt);
  EXPECT_EQ(last.describe(), "gave up after 3 attempts, no attempt is left: row changed: version 7");
}

TEST(RetryRule, an_error_that_must_not_be_repeated_is_returned_unchanged) {
  const Error last = gave_up(Error(Errc::denied, "no key"), GiveUp::not_repeatable, {.now = kNow});
  EXPECT_EQ(last.describe(), "no key");
  EXPECT_EQ(last.cause(), nullptr);
}

TEST(RetryRule, reasons_have_a_text) {
  const FailedAttempt late{.now = kNow, .deadline = Deadline(kNow)};
  EXPECT_EQ(gave_up(Errc::failed, GiveUp::no_time, late).what(), "gave up after 1 attempt, the deadline has passed");
  const FailedAttempt soon{.now = kNow, .deadline = Deadline(kNow + 20ms)};
  EXPECT_EQ(gave_up(Errc::failed, GiveUp::no_time, soon).what(), "gave up after 1 attempt, 20 ms are left");
  for (const GiveUp reason : {GiveUp::no_attempts, GiveUp::no_token, GiveUp::no_permit}) {
    EXPECT_NE(gave_up(Errc::failed, reason, {.now = kNow}).what().find(to_string(reason)), std::string::npos);
  }
}

}  // namespace
}  // namespace stint
