// What comes after an attempt.
#include "domain/after_attempt.hpp"

#include <gtest/gtest.h>

namespace stint::domain {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kNow{std::chrono::milliseconds(1'800'000'000'000)};

Outcome outcome(OutcomeKind kind, std::string conversation = {}) {
  Outcome result;
  result.kind = kind;
  result.message = "why";
  result.conversation = std::move(conversation);
  return result;
}
AttemptFacts facts(std::uint32_t number = 1) {
  AttemptFacts result;
  result.number = number;
  result.wall_now = kNow;
  result.random = ~std::uint64_t{0};  // the longest wait
  return result;
}

TEST(AfterAttempt, success_cancel_budget_and_doubt_are_final) {
  EXPECT_EQ(after_attempt(outcome(OutcomeKind::succeeded), facts()).end, RunEnd::succeeded);
  EXPECT_EQ(after_attempt(outcome(OutcomeKind::cancelled), facts()).end, RunEnd::cancelled);
  EXPECT_EQ(after_attempt(outcome(OutcomeKind::over_budget), facts()).end, RunEnd::expired);
  EXPECT_EQ(after_attempt(outcome(OutcomeKind::in_doubt), facts()).end, RunEnd::in_doubt);
  for (const OutcomeKind kind : {OutcomeKind::agent_error, OutcomeKind::not_logged_in, OutcomeKind::permission_denied,
                                 OutcomeKind::out_of_memory}) {
    const AfterAttempt after = after_attempt(outcome(kind, "conversation"), facts());
    EXPECT_FALSE(after.again) << to_string(kind);
    EXPECT_EQ(after.end, RunEnd::failed);
  }
}
TEST(AfterAttempt, an_api_error_before_anything_was_done_is_repeated_with_backoff) {
  Outcome overloaded = outcome(OutcomeKind::api_error);
  overloaded.http_status = 529;
  const AfterAttempt after = after_attempt(overloaded, facts());
  EXPECT_TRUE(after.again);
  EXPECT_TRUE(after.counts);
  EXPECT_FALSE(after.resume);
  EXPECT_EQ(after.wait, 1s) << "base · 2";
  overloaded.retry_after = 7s;
  EXPECT_EQ(after_attempt(overloaded, facts()).wait, 7s) << "never less than the other side asked for";
}
TEST(AfterAttempt, an_api_error_that_repeating_can_not_help_is_final) {
  for (const int status : {400, 401, 403, 404, 422, 402}) {
    Outcome refused = outcome(OutcomeKind::api_error);
    refused.http_status = status;
    EXPECT_FALSE(after_attempt(refused, facts()).again) << status;
  }
  Outcome quota = outcome(OutcomeKind::api_error);
  quota.http_status = 429;
  EXPECT_FALSE(after_attempt(quota, facts()).again) << "a limit without a window is a quota";
}
TEST(AfterAttempt, what_began_to_do_something_is_never_begun_again) {
  AttemptFacts used = facts();
  used.tools_used = true;
  Outcome overloaded = outcome(OutcomeKind::api_error);
  overloaded.http_status = 529;
  EXPECT_FALSE(after_attempt(overloaded, used).again);
  overloaded.conversation = "c1";
  const AfterAttempt after = after_attempt(overloaded, used);
  EXPECT_TRUE(after.again && after.resume) << "it goes on in its own conversation";
}
TEST(AfterAttempt, a_rate_limit_waits_for_its_reset_and_uses_no_attempt) {
  Outcome limited = outcome(OutcomeKind::rate_limited);
  limited.resets_at = kNow + 90s;
  const AfterAttempt after = after_attempt(limited, facts(3));
  EXPECT_TRUE(after.again) << "also after the last attempt: it does not count";
  EXPECT_FALSE(after.counts);
  EXPECT_GE(after.wait, 90s);
  EXPECT_LE(after.wait, 100s);
  AttemptFacts little = facts();
  little.time_left = 60s;
  const AfterAttempt late = after_attempt(limited, little);
  EXPECT_FALSE(late.again);
  EXPECT_EQ(late.end, RunEnd::expired);
}
TEST(AfterAttempt, a_crash_goes_on_where_it_can_else_it_is_in_doubt) {
  EXPECT_EQ(after_attempt(outcome(OutcomeKind::crashed), facts()).end, RunEnd::in_doubt);
  EXPECT_EQ(after_attempt(outcome(OutcomeKind::stalled), facts()).end, RunEnd::in_doubt);
  EXPECT_TRUE(after_attempt(outcome(OutcomeKind::crashed, "c1"), facts()).resume);
  AttemptFacts rule = facts();
  rule.on_crash = OnCrash::doubt;
  EXPECT_EQ(after_attempt(outcome(OutcomeKind::crashed, "c1"), rule).end, RunEnd::in_doubt);
  rule.on_crash = OnCrash::rerun;
  const AfterAttempt after = after_attempt(outcome(OutcomeKind::crashed, "c1"), rule);
  EXPECT_TRUE(after.again);
  EXPECT_FALSE(after.resume);
}
TEST(AfterAttempt, attempts_and_time_are_one_budget) {
  Outcome overloaded = outcome(OutcomeKind::api_error);
  overloaded.http_status = 529;
  EXPECT_TRUE(after_attempt(overloaded, facts(2)).again);
  const AfterAttempt last = after_attempt(overloaded, facts(3));
  EXPECT_EQ(last.end, RunEnd::failed);
  EXPECT_NE(last.why.find("attempt 3 of 3"), std::string::npos) << last.why;
  AttemptFacts little = facts();
  little.time_left = 500ms;
  EXPECT_EQ(after_attempt(overloaded, little).end, RunEnd::expired);
}

}  // namespace
}  // namespace stint::domain
