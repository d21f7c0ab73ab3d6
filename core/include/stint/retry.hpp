/// `co_await retry(policy, work)`: retries a failing operation; see `stint/retry_core.hpp` for the rule.
///
/// One budget covers attempts, waits and work: no attempt starts after the deadline (of the caller's scope or of its
/// budget, whichever is sooner) or without an attempt left; a running attempt is stopped at the deadline, and no wait
/// outlasts it. Cancellation ends a back-off at once and is never retried. Giving up returns the last real error.
/// Belongs to the executor's thread, like every coroutine.
#pragma once

#include "stint/combinators.hpp"
#include "stint/retry_core.hpp"
#include "stint/retry_tokens.hpp"
#include "stint/task.hpp"

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

namespace stint {

/// Source of jitter. Used from one executor's thread.
class RandomSource {
 public:
  virtual std::uint64_t next() noexcept = 0;

 protected:
  ~RandomSource() = default;
};

/// The same seed gives the same sequence on every machine (splitmix64).
class SeededRandom final : public RandomSource {
 public:
  explicit SeededRandom(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t next() noexcept override;

 private:
  std::uint64_t state_;
};

/// Called around every back-off, so that permits can be returned meanwhile.
class BackoffHook {
 public:
  /// Before the wait. If the wait is cancelled, `ready_again` is not called.
  virtual void backing_off(TimePoint until) noexcept = 0;
  /// After the wait: acquires again what `backing_off` returned. Runs under the deadline; a failure ends the retries.
  [[nodiscard]] virtual Task<Result<>> ready_again() = 0;

 protected:
  ~BackoffHook() = default;
};

/// Optional collaborators of a retry. All must outlive the await.
struct RetryOptions {
  RetryTokens* tokens = nullptr;  ///< shared by all callers of the upstream
  BackoffHook* hook = nullptr;
  RandomSource* random = nullptr;  ///< null: seeded from clock and address, which is not reproducible
};

namespace detail {

/// The state of one `retry` call: everything except the awaits.
class RetryLoop {
 public:
  RetryLoop(CancelToken& scope, CancelToken& own, const RetryPolicy& policy, const RetryOptions& options) noexcept;

  /// Counts the attempt, or returns why it must not start.
  Result<> begin_attempt();
  std::uint32_t attempt() const noexcept { return attempt_; }
  /// When the current attempt is stopped.
  Deadline attempt_deadline() const noexcept { return attempt_deadline_; }
  /// When the whole retry is stopped.
  Deadline deadline() const noexcept;
  void succeeded() noexcept;
  /// The time of the next attempt, or the error to return.
  Result<TimePoint> failed(Error error);
  /// The error to return if `ready_again` failed.
  [[nodiscard]] Error no_permit(Error error);

 private:
  TimePoint now() const noexcept { return scope_.executor().now(); }
  bool was_stopped(const Error& error) const noexcept;
  FailedAttempt facts() const noexcept;
  std::uint64_t random() noexcept;
  [[nodiscard]] Error end(GiveUp reason, Error otherwise);

  CancelToken& scope_;
  CancelToken& own_;
  Budget* const budget_;
  const RetryPolicy policy_;
  const RetryOptions options_;
  Deadline attempt_deadline_;
  std::optional<Error> last_;
  std::optional<RetryTokens::Token> token_;  // taken for the next attempt
  std::uint32_t attempt_ = 0;
};

template <class Work>
auto attempt_of(Work& work, std::uint32_t number) {
  if constexpr (std::invocable<Work&, std::uint32_t>) {
    return work(number);
  } else {
    return work();
  }
}
template <class Work>
using AttemptTask = decltype(attempt_of(std::declval<Work&>(), 1));

}  // namespace detail

/// Uses the budget of `scope`, and its deadline or the caller's own, whichever is sooner. `work(number)` or `work()`
/// creates the task of one attempt, a `Task<Result<T>>`; `number` counts from 1. `work` lives in this coroutine's
/// frame, so it may be a lambda with captures, even one that is itself a coroutine.
template <class Work>
detail::AttemptTask<Work> retry(CancelToken& scope, RetryPolicy policy, Work work, RetryOptions options = {}) {
  using R = typename detail::AttemptTask<Work>::value_type;
  static_assert(detail::IsResult<R>::value, "an attempt must return a Result");
  detail::RetryLoop loop(scope, co_await current_token(), policy, options);
  while (true) {
    STINT_CO_CHECK(loop.begin_attempt());
    R result = co_await with_deadline(loop.attempt_deadline(), detail::attempt_of(work, loop.attempt()));
    if (result) {
      loop.succeeded();
      co_return result;
    }
    STINT_CO_TRY(const TimePoint next, loop.failed(std::move(result).error()));
    if (options.hook != nullptr) options.hook->backing_off(next);
    co_await sleep_until(next);
    if (options.hook == nullptr) continue;
    Result<> ready = co_await with_deadline(loop.deadline(), options.hook->ready_again());
    if (!ready) co_return fail(loop.no_permit(std::move(ready).error()));
  }
}
/// The same with the deadline and the budget of the caller's innermost scope.
template <class Work>
detail::AttemptTask<Work> retry(RetryPolicy policy, Work work, RetryOptions options = {}) {
  CancelToken& own = co_await current_token();
  co_return co_await retry(own, policy, std::move(work), options);
}

}  // namespace stint
