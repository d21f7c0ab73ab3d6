#include "stint/retry.hpp"

#include "stint/budget.hpp"
#include "stint/http_status.hpp"
#include "stint/scope.hpp"
#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

namespace stint {
namespace {

using Attempt = std::function<Task<Result<int>>(std::uint32_t)>;

Error refused() { return {Errc::unavailable, Retry::safe, "connection refused"}; }

class MostRandom final : public RandomSource {  // maximum jitter
 public:
  std::uint64_t next() noexcept override { return ~std::uint64_t{0}; }
};

struct RetryTest : testing::Test {
  std::string at(TimePoint when) const { return std::to_string(when.time_since_epoch() / 1ms); }

  /// Fails `failures` times after `takes`, then succeeds.
  Task<Result<int>> flaky(std::uint32_t number, std::uint32_t failures, Duration takes = {}) {
    log.push_back(std::to_string(number) + "@" + at(sim.now()));
    if (takes > 0s) co_await sleep_for(takes);
    if (number <= failures) co_return fail(refused());
    co_return 42;
  }
  Attempt fails(std::uint32_t failures, Duration takes = {}) {
    return [this, failures, takes](std::uint32_t number) { return flaky(number, failures, takes); };
  }
  Task<> run(CancelToken& in, Attempt work) {
    Trace trace{log, "gone"};
    result = co_await retry(in, policy, work, options);
    log.push_back("ended@" + at(sim.now()));
  }
  /// Under a scope with a deadline and a budget.
  Task<> run_in(ScopeOptions scope_options, Attempt work) {
    const auto open = [this, work](Scope& inner) { return run(inner, work); };
    if (const auto ended = co_await with_scope(scope_options, open); !ended) result = fail(ended.error());
  }
  std::string error() const { return result && !*result ? result->error().describe() : "none"; }

  MostRandom most;
  RetryPolicy policy{.base = 1s, .cap = 8s, .attempts_max = 5};
  RetryOptions options{.random = &most};
  std::optional<Result<int>> result;
  Log log;
  Simulator sim{1};
  RootScope scope{sim};
};

TEST_F(RetryTest, repeats_until_it_succeeds) {
  scope.spawn(run(scope, fails(3)));
  sim.settle();
  EXPECT_EQ(log, (Log{"1@0", "2@2000", "3@6000", "4@14000", "ended@14000", "gone"}));
  EXPECT_EQ(**result, 42);
}

TEST_F(RetryTest, an_immediate_success_does_not_wait) {
  scope.spawn(run(scope, fails(0)));
  sim.settle();
  EXPECT_EQ(log, (Log{"1@0", "ended@0", "gone"}));
}

TEST_F(RetryTest, attempts_are_bounded_by_the_policy) {
  policy.attempts_max = 2;
  scope.spawn(run(scope, fails(9)));
  sim.settle();
  EXPECT_EQ(log, (Log{"1@0", "2@2000", "ended@2000", "gone"}));
  EXPECT_EQ(error(), "gave up after 2 attempts, no attempt is left: connection refused");
}

// Behaviour 103.
TEST_F(RetryTest, no_attempt_starts_after_the_deadline) {
  ScopeOptions under;
  under.deadline = Deadline(TimePoint(7s));
  scope.spawn(run_in(under, fails(9)));
  sim.settle();
  for (const std::string& entry : log) EXPECT_EQ(entry.find("4@"), std::string::npos);
  EXPECT_EQ(log, (Log{"1@0", "2@2000", "3@6000", "gone"})) << "the fourth would begin at the deadline";
  EXPECT_EQ(result->error(), Errc::timed_out);
  EXPECT_EQ(sim.now(), TimePoint(7s));
}

// Behaviour 103.
TEST_F(RetryTest, no_attempt_starts_after_the_budgets_time) {
  Budget budget(Allowance{.time = 7s});
  ScopeOptions under;
  under.budget = &budget;
  scope.spawn(run_in(under, fails(9)));
  sim.settle();
  EXPECT_EQ(log, (Log{"1@0", "2@2000", "3@6000", "ended@7000", "gone"}));
  EXPECT_EQ(error(), "gave up after 3 attempts, the deadline has passed: connection refused");
  EXPECT_EQ(result->error(), Errc::unavailable);
}

// Behaviour 103.
TEST_F(RetryTest, a_back_off_is_clipped_to_the_remaining_budget) {
  Budget budget(Allowance{.time = 7s});
  SeededRandom random(3);
  options.random = &random;
  policy = {.base = 1h, .cap = 1h, .attempts_max = 2};
  ScopeOptions under;
  under.budget = &budget;
  scope.spawn(run_in(under, fails(1)));
  sim.settle();
  EXPECT_TRUE(result->has_value()) << "an hour of jitter, drawn from the seven seconds that there are";
  EXPECT_LT(sim.now(), TimePoint(7s));
}

TEST_F(RetryTest, an_attempt_is_stopped_at_the_budgets_time) {
  Budget budget(Allowance{.time = 7s});
  ScopeOptions under;
  under.budget = &budget;
  scope.spawn(run_in(under, fails(1, 4s)));
  sim.settle();
  EXPECT_EQ(log, (Log{"1@0", "2@6000", "ended@7000", "gone"}));
  EXPECT_EQ(error(), "gave up after 2 attempts, the deadline has passed: connection refused")
      << "the last real error, not the lack of time";
}

TEST_F(RetryTest, a_first_attempt_stopped_at_the_budgets_time_has_an_unknown_outcome) {
  Budget budget(Allowance{.time = 1s});
  ScopeOptions under;
  under.budget = &budget;
  policy.idempotent = true;
  scope.spawn(run_in(under, fails(0, 4s)));
  sim.settle();
  EXPECT_EQ(error(), "attempt 1 was stopped at the deadline");
  EXPECT_EQ(result->error().retry(), Retry::unknown);
  EXPECT_EQ(sim.now(), TimePoint(1s));
}

// Behaviour 104.
TEST_F(RetryTest, a_cancel_during_back_off_returns_at_once) {
  RetryTokens tokens({.burst = 1, .ratio = 0});
  options.tokens = &tokens;
  policy.base = 1h;
  policy.cap = 1h;
  scope.spawn(run(scope, fails(9)));
  sim.advance(10s);
  EXPECT_EQ(log, Log{"1@0"});
  EXPECT_EQ(tokens.available(), 0.0);
  scope.cancel();
  sim.run_ready();
  EXPECT_EQ(log, (Log{"1@0", "gone"}));
  EXPECT_TRUE(scope.idle());
  EXPECT_EQ(sim.now(), TimePoint(10s));
  EXPECT_EQ(tokens.available(), 1.0) << "the retry did not take place";
}

// Behaviour 105.
TEST_F(RetryTest, cancelled_is_never_retried) {
  policy.idempotent = true;
  const Attempt work = [this](std::uint32_t number) -> Task<Result<int>> {
    log.push_back(std::to_string(number));
    co_return fail(Error(Errc::cancelled, Retry::safe, "stopped by the caller"));
  };
  scope.spawn(run(scope, work));
  sim.settle();
  EXPECT_EQ(log, (Log{"1", "ended@0", "gone"}));
  EXPECT_EQ(error(), "stopped by the caller");
}

TEST_F(RetryTest, a_cancel_during_an_attempt_stops_everything) {
  scope.spawn(run(scope, fails(9, 5s)));
  sim.advance(1s);
  scope.cancel();
  sim.run_ready();
  EXPECT_EQ(log, (Log{"1@0", "gone"}));
  EXPECT_TRUE(scope.idle());
}

TEST_F(RetryTest, a_cancelled_scope_elsewhere_ends_the_retries) {
  RootScope other(sim);
  scope.spawn(run(other, fails(9)));
  sim.advance(1s);
  other.cancel();
  sim.settle();
  EXPECT_EQ(log, (Log{"1@0", "ended@2000", "gone"}));
  EXPECT_EQ(result->error(), Errc::unavailable);
}

// Behaviour 106.
TEST_F(RetryTest, waits_at_least_the_servers_delay) {
  const Attempt work = [this](std::uint32_t number) -> Task<Result<int>> {
    log.push_back(std::to_string(number) + "@" + at(sim.now()));
    if (number == 1) co_return fail(refused().after(90s));
    co_return 1;
  };
  scope.spawn(run(scope, work));
  sim.settle();
  EXPECT_EQ(log, (Log{"1@0", "2@90000", "ended@90000", "gone"}));
}

// Behaviour 106.
TEST_F(RetryTest, a_server_delay_beyond_the_deadline_fails_at_once) {
  ScopeOptions under;
  under.deadline = Deadline(TimePoint(60s));
  const Attempt work = [](std::uint32_t) -> Task<Result<int>> { co_return fail(refused().after(90s)); };
  scope.spawn(run_in(under, work));
  sim.run_ready();
  EXPECT_EQ(log, (Log{"ended@0", "gone"}));
  EXPECT_EQ(result->error().retry_after(), 90s);
  EXPECT_EQ(error(), "gave up after 1 attempt, 60 s are left, and the server asked to wait 90 s: connection refused");
}

TEST_F(RetryTest, a_deadline_set_between_the_scope_and_the_call_counts_too) {
  const Attempt work = [](std::uint32_t) -> Task<Result<int>> { co_return fail(refused().after(90s)); };
  const auto shortened = [](RetryTest& test, Attempt attempt) -> Task<> {
    (void)co_await with_deadline(Deadline(TimePoint(60s)), test.run(test.scope, attempt));
  };
  scope.spawn(shortened(*this, work));
  sim.run_ready();
  EXPECT_EQ(log, (Log{"ended@0", "gone"}));
}

TEST_F(RetryTest, the_deadline_of_a_scope_elsewhere_counts_too) {
  ScopeOptions under;
  under.deadline = Deadline(TimePoint(60s));
  const Attempt work = [](std::uint32_t) -> Task<Result<int>> { co_return fail(refused().after(90s)); };
  const auto open_one = [](RetryTest& test, ScopeOptions in, Attempt attempt) -> Task<> {
    const auto open = [&](Scope& inner) -> Task<> {
      test.scope.spawn(test.run(inner, attempt));
      co_await sleep_for(1s);
    };
    (void)co_await with_scope(in, open);
  };
  scope.spawn(open_one(*this, under, work));
  sim.settle();
  EXPECT_EQ(log, (Log{"ended@0", "gone"}));
}

// Behaviour 107.
TEST_F(RetryTest, pushback_to_stop_ends_the_retries) {
  const Attempt work = [this](std::uint32_t number) -> Task<Result<int>> {
    log.push_back(std::to_string(number));
    co_return fail(http_error(503, {.delay = parse_pushback_ms("-1")}, "go away"));
  };
  scope.spawn(run(scope, work));
  sim.settle();
  EXPECT_EQ(log, (Log{"1", "ended@0", "gone"}));
  EXPECT_EQ(error(), "HTTP 503: go away");
}

TEST_F(RetryTest, errors_not_marked_safe_are_not_repeated) {
  const Attempt work = [this](std::uint32_t number) -> Task<Result<int>> {
    log.push_back(std::to_string(number));
    co_return fail(Error(Errc::unavailable, Retry::unknown, "reset after send"));
  };
  scope.spawn(run(scope, work));
  sim.settle();
  EXPECT_EQ(log, (Log{"1", "ended@0", "gone"}));
  log.clear();
  policy.idempotent = true;
  scope.spawn(run(scope, work));
  sim.settle();
  EXPECT_EQ(log.size(), 7u) << "five attempts";
}

// Behaviour 110.
TEST_F(RetryTest, an_exhausted_budget_returns_the_last_real_error) {
  Budget budget(Allowance{.attempts = 2});
  ScopeOptions under;
  under.budget = &budget;
  scope.spawn(run_in(under, fails(9)));
  sim.settle();
  EXPECT_EQ(log, (Log{"1@0", "2@2000", "ended@2000", "gone"}));
  EXPECT_EQ(result->error(), Errc::unavailable);
  EXPECT_EQ(error(), "gave up after 2 attempts, no attempt is left: connection refused");
  EXPECT_EQ(budget.remaining(sim.now()).attempts, 0);
}

TEST_F(RetryTest, an_empty_budget_starts_no_attempt) {
  Budget no_attempts(Allowance{.attempts = 0});
  ScopeOptions under;
  under.budget = &no_attempts;
  scope.spawn(run_in(under, fails(0)));
  sim.settle();
  EXPECT_EQ(error(), "the budget is exhausted: 1 attempts wanted, 0 left, 1 missing");
  Budget no_time(Allowance{.time = 0s});
  under.budget = &no_time;
  scope.spawn(run_in(under, fails(0)));
  sim.settle();
  EXPECT_EQ(error(), "the budget is exhausted: its time is used up");
  EXPECT_EQ(result->error(), Errc::exhausted);
  EXPECT_EQ(log, (Log{"ended@0", "gone", "ended@0", "gone"}));
}

// Behaviour 111.
TEST_F(RetryTest, all_retries_beneath_a_scope_draw_on_one_budget) {
  Budget budget(Allowance{.attempts = 7});
  ScopeOptions under;
  under.budget = &budget;
  SeededRandom random(5);
  options.random = &random;
  policy.attempts_max = 100;
  const auto many = [](RetryTest& test, ScopeOptions in) -> Task<> {
    const auto open = [&test](Scope& inner) -> Task<> {
      for (int i = 0; i < 3; ++i) inner.spawn(test.run(inner, test.fails(1000)));
      co_return;
    };
    (void)co_await with_scope(in, open);
  };
  scope.spawn(many(*this, under));
  sim.settle();
  EXPECT_EQ(std::count_if(log.begin(), log.end(), [](const std::string& entry) { return std::isdigit(entry[0]); }), 7);
  EXPECT_EQ(budget.spent().attempts, 7);
}

TEST_F(RetryTest, calls_that_do_not_count_attempts_leave_the_budgets_attempts_alone) {
  Budget budget(Allowance{.attempts = 0});
  ScopeOptions under;
  under.budget = &budget;
  policy.counts_attempts = false;
  scope.spawn(run_in(under, fails(2)));
  sim.settle();
  EXPECT_EQ(**result, 42);
}

// Behaviour 114.
TEST_F(RetryTest, an_attempt_sees_no_later_deadline_than_its_parents) {
  Budget budget(Allowance{.time = 50s});
  ScopeOptions under;
  under.budget = &budget;
  under.deadline = Deadline(TimePoint(60s));
  policy.attempt_time_max = 20s;
  policy.idempotent = true;
  policy.attempts_max = 3;
  const Attempt work = [this](std::uint32_t number) -> Task<Result<int>> {
    CancelToken& token = co_await current_token();
    log.push_back(std::to_string(number) + " until " + at(token.deadline().when()));
    co_await sleep_for(1h);
    co_return 1;
  };
  scope.spawn(run_in(under, work));
  sim.settle();
  EXPECT_EQ(log, (Log{"1 until 20000", "2 until 42000", "3 until 50000", "ended@50000", "gone"}));
  EXPECT_EQ(error(),
            "gave up after 3 attempts, the deadline has passed: attempt 2 exceeded the time limit per attempt");
}

TEST_F(RetryTest, an_attempt_that_takes_too_long_is_repeated_only_if_idempotent) {
  policy.attempt_time_max = 2s;
  scope.spawn(run(scope, fails(0, 3s)));
  sim.settle();
  EXPECT_EQ(error(), "attempt 1 exceeded the time limit per attempt");
  EXPECT_EQ(result->error().retry(), Retry::unknown);
}

TEST_F(RetryTest, retry_tokens_bound_the_retries_of_all_callers) {
  RetryTokens tokens({.burst = 2, .ratio = 0.5});
  options.tokens = &tokens;
  scope.spawn(run(scope, fails(9)));
  sim.settle();
  EXPECT_EQ(log, (Log{"1@0", "2@2000", "3@6000", "ended@6000", "gone"}));
  EXPECT_EQ(result->error().cause()->what(), "connection refused");
  EXPECT_NE(error().find("no retry token is left"), std::string::npos);
  log.clear();
  for (int i = 0; i < 2; ++i) scope.spawn(run(scope, fails(0)));  // two successes earn one retry
  sim.settle();
  EXPECT_EQ(tokens.available(), 1.0);
}

class Door final : public BackoffHook {
 public:
  Door(RetryTest& owner, Duration wait) : test(owner), takes(wait) {}
  void backing_off(TimePoint until) noexcept override { test.log.push_back("out until " + test.at(until)); }
  Task<Result<>> ready_again() override {
    if (takes > 0s) co_await sleep_for(takes);
    test.log.push_back("in@" + test.at(test.sim.now()));
    co_return answer;
  }
  RetryTest& test;
  Duration takes;
  Result<> answer;
};

TEST_F(RetryTest, a_hook_releases_and_reacquires_around_each_wait) {
  Door door(*this, 1s);
  options.hook = &door;
  scope.spawn(run(scope, fails(2)));
  sim.settle();
  EXPECT_EQ(log, (Log{"1@0", "out until 2000", "in@3000", "2@3000", "out until 7000", "in@8000", "3@8000", "ended@8000",
                      "gone"}));
}

TEST_F(RetryTest, a_failed_reacquisition_ends_the_retries_with_the_last_real_error) {
  Door door(*this, 0s);
  door.answer = fail(Errc::closed, "no more permits");
  options.hook = &door;
  scope.spawn(run(scope, fails(9)));
  sim.settle();
  EXPECT_EQ(log, (Log{"1@0", "out until 2000", "in@2000", "ended@2000", "gone"}));
  EXPECT_EQ(error(),
            "gave up after 1 attempt, the permit released during the back-off could not be acquired again: connection "
            "refused");
}

TEST_F(RetryTest, waiting_for_the_permit_ends_at_the_deadline_too) {
  Budget budget(Allowance{.time = 3s});
  ScopeOptions under;
  under.budget = &budget;
  Door door(*this, 1h);
  options.hook = &door;
  scope.spawn(run_in(under, fails(9)));
  sim.settle();
  EXPECT_EQ(log, (Log{"1@0", "out until 2000", "ended@3000", "gone"}));
  EXPECT_EQ(error(), "gave up after 1 attempt, the deadline has passed: connection refused");
}

TEST_F(RetryTest, an_exception_is_not_a_failure_to_repeat) {
  const Attempt work = [](std::uint32_t) -> Task<Result<int>> {
    throw std::runtime_error("a bug");
    co_return 1;
  };
  scope.spawn(run(scope, work));
  sim.settle();
  EXPECT_NE(scope.exception(), nullptr);
}

TEST_F(RetryTest, work_may_take_no_number_and_return_no_value) {
  const auto caller = [](RetryTest& test) -> Task<> {
    const auto nothing = []() -> Task<Result<>> { co_return Result<>(); };
    const Result<> done = co_await retry(test.scope, test.policy, nothing);
    test.log.push_back(done ? "done" : "failed");
  };
  scope.spawn(caller(*this));
  sim.settle();
  EXPECT_EQ(log, Log{"done"});
}

TEST_F(RetryTest, without_a_scope_it_keeps_the_deadline_of_the_one_it_runs_in) {
  const auto caller = [](RetryTest& test) -> Task<> {
    const auto never = [&test]() -> Task<Result<>> {
      test.log.push_back("attempt");
      co_return fail(Error(Errc::unavailable, Retry::safe, "down").after(1h));
    };
    const auto open = [&](Scope&) { return retry(test.policy, never, test.options); };
    const Result<> done = co_await with_scope({.deadline = Deadline(test.sim.now() + 1s)}, open);
    test.log.push_back(done.error().describe());
  };
  policy = {.base = 1h, .cap = 1h, .attempts_max = 3};
  scope.spawn(caller(*this));
  sim.settle();
  ASSERT_EQ(log.size(), 2u) << "what does not fit fails now";
  EXPECT_TRUE(log[1].contains("down")) << log[1];
  EXPECT_EQ(sim.now(), TimePoint());
}

TEST_F(RetryTest, without_a_source_of_random_numbers_waits_still_differ) {
  options.random = nullptr;
  policy = {.base = 1h, .cap = 1h, .attempts_max = 2};
  for (int i = 0; i < 8; ++i) scope.spawn(run(scope, fails(1)));
  sim.settle();
  std::sort(log.begin(), log.end());
  const auto distinct = std::unique(log.begin(), log.end()) - log.begin();
  EXPECT_GE(distinct, 1 + 4 + 4) << "the first attempt of all, then almost all second ones at moments of their own";
}

TEST(SeededRandom, is_the_published_sequence) {
  SeededRandom random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317u);
  EXPECT_EQ(random.next(), 3203168211198807973u);
}

}  // namespace
}  // namespace stint
