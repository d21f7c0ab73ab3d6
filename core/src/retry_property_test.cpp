// `retry` on the simulator against a script played by hand: random policies, budgets, deadlines, durations and errors.
#include "stint/budget.hpp"
#include "stint/retry.hpp"
#include "stint/scope.hpp"
#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace stint {
namespace {

struct Step {  // one attempt of the script
  Duration takes{};
  std::optional<Error> error{};
};
struct Script {
  RetryPolicy policy{};
  Allowance allowance{};
  std::uint64_t seed = 0;
  std::vector<Step> steps;
};
struct Play {  // the result
  std::vector<TimePoint> starts;
  bool succeeded = false;
  Errc code{};
  TimePoint ended{};
};

Step any_step() {
  Step step{.takes = std::chrono::milliseconds(*rc::gen::inRange(0, 3000))};
  if (*rc::gen::inRange(0, 4) == 0) return step;
  const auto retry = *rc::gen::weightedElement<Retry>({{8, Retry::safe}, {2, Retry::unknown}, {1, Retry::never}});
  const auto code = *rc::gen::element(Errc::unavailable, Errc::conflict, Errc::failed);
  step.error = Error(code, retry);
  if (*rc::gen::inRange(0, 4) == 0) {
    step.error = std::move(*step.error).after(std::chrono::milliseconds(*rc::gen::inRange(0, 5000)));
  }
  return step;
}

Script any_script() {
  Script script;
  script.policy = {.base = std::chrono::milliseconds(*rc::gen::inRange(0, 1000)),
                   .cap = std::chrono::milliseconds(*rc::gen::inRange(0, 4000)),
                   .attempts_max = *rc::gen::inRange<std::uint32_t>(1, 8),
                   .idempotent = *rc::gen::arbitrary<bool>()};
  if (*rc::gen::arbitrary<bool>()) script.policy.attempt_time_max = 1s;
  if (*rc::gen::arbitrary<bool>()) script.allowance.time = std::chrono::milliseconds(*rc::gen::inRange(0, 15'000));
  if (*rc::gen::arbitrary<bool>()) script.allowance.attempts = *rc::gen::inRange<std::int64_t>(0, 6);
  script.seed = *rc::gen::arbitrary<std::uint64_t>();
  for (int i = 0; i < 8; ++i) script.steps.push_back(any_step());
  return script;
}

// ---- By hand -------------------------------------------------------------------------------------------------------

TimePoint wakes_at(TimePoint when, TimePoint now) {  // timers fire on whole milliseconds, never early, never at once
  return std::max<TimePoint>(std::chrono::ceil<std::chrono::milliseconds>(when), now + Executor::kTick);
}

Play by_hand(const Script& script) {
  Play play;
  SeededRandom random(script.seed);
  const Deadline deadline = Deadline::after(TimePoint(), script.allowance.time);
  TimePoint now{};
  std::optional<Error> last;
  std::int64_t attempts_left = script.allowance.attempts;
  const auto give_up = [&](Errc otherwise) {
    play.code = last ? last->code() : otherwise;
    play.ended = now;
    return play;
  };
  for (std::uint32_t number = 1;; ++number) {
    if (deadline.passed(now) || attempts_left == 0) return give_up(Errc::exhausted);
    if (attempts_left != Allowance::kUnlimited) --attempts_left;
    play.starts.push_back(now);
    const Step& step = script.steps[number - 1];
    const Deadline until = deadline.sooner(Deadline::after(now, script.policy.attempt_time_max));
    const bool stopped = until.when() - now <= step.takes;  // of two timers for one moment, the deadline's is older
    now = stopped ? until.when() : now + step.takes;
    if (stopped && deadline.passed(now)) return give_up(Errc::timed_out);
    if (!stopped && !step.error) {
      play.succeeded = true;
      play.ended = now;
      return play;
    }
    last = stopped ? Error(Errc::timed_out, Retry::unknown) : *step.error;
    const RetryDecision next = decide_retry(
        script.policy, *last,
        {.number = number, .now = now, .deadline = deadline, .attempts_left = attempts_left, .random = random.next()});
    if (!next) return give_up(Errc::failed);
    now = wakes_at(*next, now);
  }
}

// ---- On the simulator ----------------------------------------------------------------------------------------------

Task<Result<int>> one_attempt(const Script& script, Play& play, Simulator& sim, std::uint32_t number) {
  play.starts.push_back(sim.now());
  const Step& step = script.steps[number - 1];
  if (step.takes > 0s) co_await sleep_for(step.takes);
  if (step.error) co_return fail(*step.error);
  co_return 1;
}

Task<> play_it(const Script& script, Play& play, Simulator& sim, Budget& budget) {
  ScopeOptions under;
  under.budget = &budget;
  SeededRandom random(script.seed);
  const auto attempt = [&](std::uint32_t number) { return one_attempt(script, play, sim, number); };
  const auto open = [&](Scope& scope) { return retry(scope, script.policy, attempt, RetryOptions{.random = &random}); };
  const Result<int> result = co_await with_scope(under, open);
  play.succeeded = result.has_value();
  if (!result) play.code = result.error().code();
  play.ended = sim.now();
}

RC_GTEST_PROP(RetryProperty, agrees_with_a_hand_played_script, ()) {
  const Script script = any_script();
  const Play expected = by_hand(script);
  Budget budget(script.allowance);
  Play play;
  Simulator sim(*rc::gen::arbitrary<std::uint64_t>());
  RootScope scope(sim);
  scope.spawn(play_it(script, play, sim, budget));
  sim.settle();
  RC_ASSERT(scope.idle());
  RC_ASSERT(play.starts == expected.starts);
  RC_ASSERT(play.succeeded == expected.succeeded);
  RC_ASSERT(play.ended == expected.ended);
  if (!play.succeeded) RC_ASSERT(play.code == expected.code);
  RC_ASSERT(budget.spent().attempts == static_cast<std::int64_t>(play.starts.size()));
  const Deadline deadline = Deadline::after(TimePoint(), script.allowance.time);
  for (const TimePoint start : play.starts) RC_ASSERT(!deadline.passed(start));
  RC_ASSERT(deadline.is_never() || play.ended <= deadline.when());
}

/// A cancel at any time ends the retries at that time, with nothing left behind.
RC_GTEST_PROP(RetryProperty, a_cancel_at_any_time_ends_the_retries_at_once, ()) {
  const Script script = any_script();
  const Duration when = std::chrono::milliseconds(*rc::gen::inRange(0, 20'000));
  Budget budget(script.allowance);
  Play play;
  Simulator sim(*rc::gen::arbitrary<std::uint64_t>());
  RootScope scope(sim);
  scope.spawn(play_it(script, play, sim, budget));
  sim.advance(when);
  scope.cancel();
  sim.run_ready();
  RC_ASSERT(scope.idle());
  RC_ASSERT(!sim.step());
}

}  // namespace
}  // namespace stint
