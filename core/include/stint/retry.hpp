/// `co_await retry(policy, work)`: repeats what may be repeated; see `stint/retry_core.hpp` for the rule.
///
/// One budget covers attempts, waits and work: no attempt begins after the deadline (of the scope that the caller runs
/// in, or of its budget, whichever is sooner) or without an attempt left, an attempt that runs into the deadline is
/// stopped there, and no wait outlasts it. A cancel ends a back-off at once and is never repeated. Who gives up returns
/// the last real error. Belongs to the executor's thread, as every coroutine.
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

/// Where jitter comes from. One executor's thread.
class RandomSource {
 public:
  virtual std::uint64_t next() noexcept = 0;

 protected:
  ~RandomSource() = default;
};

/// The same seed gives the same numbers, on every machine (splitmix64).
class SeededRandom final : public RandomSource {
 public:
  explicit SeededRandom(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t next() noexcept override;

 private:
  std::uint64_t state_;
};

/// Told of every back-off, so that a permit can be given back meanwhile.
class BackoffHook {
 public:
  /// Before the wait. A stop may follow instead of `ready_again`.
  virtual void backing_off(TimePoint until) noexcept = 0;
  /// After the wait: takes back what was given. Runs under the deadline; a failure ends the retries.
  [[nodiscard]] virtual Task<Result<>> ready_again() = 0;

 protected:
  ~BackoffHook() = default;
};

/// What a retry may use besides its policy. All of it must outlive the await.
struct RetryOptions {
  RetryTokens* tokens = nullptr;  ///< shared by all callers of the upstream
  BackoffHook* hook = nullptr;
  RandomSource* random = nullptr;  ///< none: jitter from clock and address, which no replay repeats
};

namespace detail {

/// The state of one `retry`: everything but the awaits.
class RetryLoop {
 public:
  RetryLoop(CancelToken& scope, CancelToken& own, const RetryPolicy& policy, const RetryOptions& options) noexcept;

  /// Counts the attempt, or says why it must not begin.
  Result<> begin_attempt();
  std::uint32_t attempt() const noexcept { return attempt_; }
  /// When the present attempt is stopped.
  Deadline attempt_deadline() const noexcept { return attempt_deadline_; }
  /// When everything is.
  Deadline deadline() const noexcept;
  void succeeded() noexcept;
  /// The moment of the next attempt, or the error to return.
  Result<TimePoint> failed(Error error);
  /// What to return if `ready_again` failed.
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

/// The budget is that of `scope`; the deadline its, or the caller's own if that is sooner.
/// `work(number)` or `work()` makes the task of one attempt, a `Task<Result<T>>`; `number` counts from 1. `work` lives
/// in this coroutine's frame, so it may be a lambda with captures, even one that is itself a coroutine.
template <class Work>
detail::AttemptTask<Work> retry(CancelToken& scope, RetryPolicy policy, Work work, RetryOptions options = {}) {
  using R = typename detail::AttemptTask<Work>::value_type;
  static_assert(detail::IsResult<R>::value, "an attempt says by a Result whether it failed");
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
/// The same with the deadline and the budget of the innermost scope that the caller runs in.
template <class Work>
detail::AttemptTask<Work> retry(RetryPolicy policy, Work work, RetryOptions options = {}) {
  CancelToken& own = co_await current_token();
  co_return co_await retry(own, policy, std::move(work), options);
}

}  // namespace stint
