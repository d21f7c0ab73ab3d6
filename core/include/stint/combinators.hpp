/// Concurrent work beneath one await: `race`, `all`, `select`, `with_deadline`, `with_timeout`, `finally_do`, `shield`.
/// Each is a leaf to the chain that awaits it and a catcher to the chains beneath it: a stop from below ends here, and
/// the frames are destroyed here. Each completes only when everything beneath it is destroyed.
#pragma once

#include "stint/all.hpp"
#include "stint/detail/branch.hpp"

#include <tuple>
#include <vector>

namespace stint {

/// `co_await with_deadline(deadline, task)` → the task's result, or `Errc::timed_out` if it had to be stopped at the
/// deadline. Not started if the deadline has passed. A result available in time wins.
class WithDeadlineBase : public detail::Combinator, private Timer {
 protected:
  explicit WithDeadlineBase(Deadline deadline) noexcept : deadline_(deadline) {}
  explicit WithDeadlineBase(Duration timeout) noexcept : deadline_(TimePoint(timeout)), relative_(true) {}
  ~WithDeadlineBase() = default;
  /// Null if the task must not start: already stopped, or the deadline has passed.
  CancelToken* begin() noexcept;
  bool too_late() const noexcept { return too_late_; }
  [[nodiscard]] static Error timed_out();

 private:
  void branch_ended(Chain& branch, End end) noexcept override;
  void fire() noexcept override { token_->cancel(Reason::deadline); }

  Deadline deadline_;  // relative: counted from the await
  std::optional<CancelToken> token_;
  bool too_late_ = false;
  bool relative_ = false;
};
template <class T>
class WithDeadline final : public WithDeadlineBase {
 public:
  template <class Limit>
  WithDeadline(Limit limit, Task<T> task) noexcept : WithDeadlineBase(limit), branch_(std::move(task)) {}
  bool await_suspend(std::coroutine_handle<>) noexcept {
    CancelToken* const beneath = begin();
    if (beneath != nullptr) branch_.start(*this, *beneath);
    return !too_late();
  }
  detail::Flat<T> await_resume() {
    if (!branch_.finished()) return std::unexpected(timed_out());
    if constexpr (std::is_void_v<T>) {
      branch_.take();
      return {};
    } else {
      return branch_.take();
    }
  }

 private:
  detail::Branch<T> branch_;
};
template <class T>
[[nodiscard]] WithDeadline<T> with_deadline(Deadline deadline, Task<T> task) noexcept {
  return {deadline, std::move(task)};
}
/// `co_await with_timeout(5s, task)`: the same, with a duration counted from the await.
template <class T>
[[nodiscard]] WithDeadline<T> with_timeout(Duration timeout, Task<T> task) noexcept {
  return {timeout, std::move(task)};
}

/// What `race` and `all` share: several branches under one token.
template <class... Ts>
class Branches : public detail::Combinator {
  static_assert(sizeof...(Ts) > 0, "needs at least one operation to wait for");

 public:
  void await_suspend(std::coroutine_handle<>) noexcept {
    if (!park()) return;
    token_.emplace(token());
    std::apply([this](auto&... branch) { (branch.start(*this, *token_), ...); }, branches_);
  }

 protected:
  explicit Branches(Task<Ts>... tasks) noexcept : branches_(std::move(tasks)...) {}
  ~Branches() = default;
  void one_ended() noexcept {
    if (--running_ == 0) complete();
  }

  std::optional<CancelToken> token_;
  std::tuple<detail::Branch<Ts>...> branches_;
  std::size_t running_ = sizeof...(Ts);
};

/// `co_await race(a, b, …)` → variant (void as monostate). The first to finish wins; the others are stopped and
/// destroyed before the result is returned. An exception counts as finishing.
template <class... Ts>
class Race final : public Branches<Ts...> {
 public:
  explicit Race(Task<Ts>... tasks) noexcept : Branches<Ts...>(std::move(tasks)...) {}
  using Winner = std::variant<detail::Regular<Ts>...>;
  [[nodiscard]] Winner await_resume() { return take(std::index_sequence_for<Ts...>()); }
  /// Not nodiscard if every branch is void: the caller need not care which one won.
  Winner await_resume()
    requires(std::is_void_v<Ts> && ...)
  {
    return take(std::index_sequence_for<Ts...>());
  }

 private:
  void branch_ended(Chain& branch, End end) noexcept override {
    if (end == End::finished && first_ == nullptr) {
      first_ = &branch;
      this->token_->cancel(Reason::lost_race);
    }
    this->one_ended();
  }
  template <std::size_t... Is>
  Winner take(std::index_sequence<Is...>) {
    std::optional<Winner> winner;
    const auto pick = [&]<std::size_t I>() {
      auto& branch = std::get<I>(this->branches_);
      if (first_ == &branch) winner.emplace(std::in_place_index<I>, branch.take_regular());
    };
    (pick.template operator()<Is>(), ...);
    return std::move(*winner);
  }

  Chain* first_ = nullptr;
};
template <class... Ts>
[[nodiscard]] Race<Ts...> race(Task<Ts>... tasks) noexcept {
  return Race<Ts...>(std::move(tasks)...);
}

/// `co_await all(a, b, …)` → a tuple of the results (void as monostate). The first branch that throws or fails stops
/// the others. If any branch returns a `Result`, `all` does too: a tuple of the values, or the first failure.
template <class... Ts>
class All final : public Branches<Ts...> {
  template <class T>
  struct Value {
    using type = detail::Regular<T>;
  };
  template <class T>
  struct Value<Result<T>> {
    using type = detail::Regular<T>;
  };
  using Values = std::tuple<typename Value<Ts>::type...>;
  static constexpr bool kFallible = (detail::IsResult<Ts>::value || ...);

 public:
  using Outcome = std::conditional_t<kFallible, Result<Values>, Values>;

  explicit All(Task<Ts>... tasks) noexcept : Branches<Ts...>(std::move(tasks)...) {}
  Outcome await_resume() {
    std::optional<Error> error;
    std::apply([&](auto&... branch) { (check(branch, error), ...); }, this->branches_);
    if constexpr (kFallible) {
      if (error) return std::unexpected(std::move(*error));
    }
    return std::apply([](auto&... branch) { return Values(value(branch)...); }, this->branches_);
  }

 private:
  template <class T>
  void check(detail::Branch<T>& branch, std::optional<Error>& error) {
    if (&branch != first_bad_) return;
    if (branch.threw()) (void)branch.take();  // throws
    if constexpr (detail::IsResult<T>::value) error = branch.take().error();
  }
  template <class T>
  static typename Value<T>::type value(detail::Branch<T>& branch) {
    if constexpr (std::is_same_v<T, Result<void>>) {
      return {};
    } else if constexpr (detail::IsResult<T>::value) {
      return *branch.take();
    } else {
      return branch.take_regular();
    }
  }
  void branch_ended(Chain& branch, End end) noexcept override {
    if (end == End::finished && first_bad_ == nullptr && is_bad(branch)) {
      first_bad_ = &branch;
      this->token_->cancel(Reason::sibling_failed);
    }
    this->one_ended();
  }
  bool is_bad(Chain& ended) noexcept {
    return std::apply(
        [&ended](auto&... branch) { return ((&branch == &ended && (branch.threw() || branch.failed())) || ...); },
        this->branches_);
  }

  Chain* first_bad_ = nullptr;
};
template <class... Ts>
[[nodiscard]] All<Ts...> all(Task<Ts>... tasks) noexcept {
  return All<Ts...>(std::move(tasks)...);
}

/// Any awaitable as a task.
template <class Awaited>
auto awaited(Awaited awaitable) -> Task<decltype(std::declval<Awaited&>().await_resume())> {
  co_return co_await awaitable;
}
template <class T>
Task<T> awaited(Task<T> task) noexcept {
  return task;
}

namespace detail {
/// At least one is not a task; each is wrapped into one. An awaitable that can't be moved, such as another combinator,
/// must be awaited in a coroutine of its own instead.
template <class... Ts>
concept SomeAwaitables =
    ((Awaitable<Ts> && std::move_constructible<Ts>) && ...) && !(kIsTask<std::remove_cvref_t<Ts>> && ...);
}  // namespace detail

/// `all`, `race`, `with_deadline` and `with_timeout` for awaitables that are not tasks: `all(slots.acquire(),
/// sleep_for(1s), work())`.
template <class... Ts>
  requires detail::SomeAwaitables<Ts...>
[[nodiscard]] auto all(Ts... awaitables) {
  return all(awaited(std::move(awaitables))...);
}
template <class... Ts>
  requires detail::SomeAwaitables<Ts...>
[[nodiscard]] auto race(Ts... awaitables) {
  return race(awaited(std::move(awaitables))...);
}
template <class T>
  requires detail::SomeAwaitables<T>
[[nodiscard]] auto with_deadline(Deadline deadline, T awaitable) {
  return with_deadline(deadline, awaited(std::move(awaitable)));
}
template <class T>
  requires detail::SomeAwaitables<T>
[[nodiscard]] auto with_timeout(Duration timeout, T awaitable) {
  return with_timeout(timeout, awaited(std::move(awaitable)));
}

/// The part of `select` that does not depend on the branches' types.
class SelectBase : public detail::Combinator {
 public:
  void await_suspend(std::coroutine_handle<>) noexcept;

 protected:
  SelectBase() = default;
  ~SelectBase() = default;
  /// Starts the branches in order, as long as none is ready.
  virtual void start_branches() noexcept = 0;
  /// The first branch, in argument order, that is ready; `running` counts as ready.
  virtual const Chain* earliest_ready(const Chain* running) const noexcept = 0;
  /// No branch has won yet, so the next one may start.
  bool undecided() const noexcept { return preferred_ == nullptr && first_ == nullptr && !token_->cancelled(); }
  template <class T>
  void start(detail::Branch<T>& branch) noexcept {
    if (!undecided()) return;
    ++running_;
    branch.start_now(*this, *token_);
    if (undecided() && branch.ready()) preferred_ = &branch;
  }

  const Chain* first_ = nullptr;  // the first branch that finished

 private:
  struct Start final : Runnable {
    explicit Start(SelectBase& owner) noexcept : self(owner) {}
    void run() noexcept override { self.begin(); }
    SelectBase& self;
  };
  void begin() noexcept;
  void one_ended() noexcept;
  void branch_ended(Chain& branch, End end) noexcept override;
  bool may_resume(const Chain& branch) noexcept override;

  Start start_{*this};
  std::optional<CancelToken> token_;
  std::size_t running_ = 0;
  const Chain* preferred_ = nullptr;  // ready and about to resume; the others are stopped
};

/// `co_await select(semaphore.acquire(), cancelled(other), sleep_for(5s))` → variant of the first operation that is
/// ready. The others are withdrawn, and what they were granted is returned. If several are ready, at the start or on
/// resume, the first in argument order wins, and those after it are not started. A task counts as ready when it has
/// ended.
template <class... Awaitables>
class Select final : public SelectBase {
  static_assert(sizeof...(Awaitables) > 0, "needs at least one operation to wait for");
  template <class Awaitable>
  using Value = decltype(std::declval<Awaitable&>().await_resume());

 public:
  using Winner = std::variant<detail::Regular<Value<Awaitables>>...>;

  explicit Select(Awaitables... awaitables) : branches_(awaited(std::move(awaitables))...) {}
  Winner await_resume() { return take(std::index_sequence_for<Awaitables...>()); }

 private:
  void start_branches() noexcept override {
    std::apply([this](auto&... branch) { (this->start(branch), ...); }, branches_);
  }
  const Chain* earliest_ready(const Chain* running) const noexcept override {
    const Chain* found = nullptr;
    const auto look = [&](const auto& branch) {
      if (found == nullptr && (&branch == running || branch.ready())) found = &branch;
    };
    std::apply([&](const auto&... branch) { (look(branch), ...); }, branches_);
    return found;
  }
  template <std::size_t... Is>
  Winner take(std::index_sequence<Is...>) {
    std::optional<Winner> winner;
    const auto pick = [&]<std::size_t I>() {
      auto& branch = std::get<I>(branches_);
      if (first_ == &branch) winner.emplace(std::in_place_index<I>, branch.take_regular());
    };
    (pick.template operator()<Is>(), ...);
    return std::move(*winner);
  }

  std::tuple<detail::Branch<Value<Awaitables>>...> branches_;
};
template <class... Awaitables>
[[nodiscard]] Select<Awaitables...> select(Awaitables... awaitables) {
  return Select<Awaitables...>(std::move(awaitables)...);
}

/// `co_await cancelled(token)`: waits until `token` is cancelled. It is usually not the waiter's own token, whose
/// cancellation stops the waiter. The token must outlive the wait.
class Cancelled final : public Leaf {
 public:
  explicit Cancelled(CancelToken& token) noexcept : watched_(token) {}
  Cancelled(Cancelled&& other) noexcept : watched_(other.watched_) {}
  void await_suspend(std::coroutine_handle<>) noexcept;
  Reason await_resume() const noexcept { return watched_.reason(); }

 private:
  /// An entry in the watched token's list, like a chain whose leaf completes at once.
  class Watch final : public Chain {
   public:
    void start(CancelToken& token, Leaf& leaf) noexcept {
      attach(token);
      parked = &leaf;
    }
    void run() noexcept override {}
    void ended(End) noexcept override {}
    void threw(std::exception_ptr) noexcept override {}
    void abandon() noexcept override { unlink(); }
  };
  bool ready() const noexcept override { return !watch_.linked(); }
  void cancel() noexcept override {
    if (!watch_.linked()) return;  // already queued
    watch_.unlink();
    complete();
  }

  CancelToken& watched_;
  Watch watch_;
};
[[nodiscard]] inline Cancelled cancelled(CancelToken& token) noexcept { return Cancelled(token); }

/// `co_await finally_do(body, cleanup, grace)`: `cleanup` runs after `body` however that ended, even if the body never
/// started, shielded from every cancellation except its own deadline of `grace`. Then the body's end propagates: its
/// result, its exception, or the stop. An exception from the cleanup takes precedence over the body's result.
class FinallyDoBase : public detail::Combinator, private Timer {
 public:
  void await_suspend(std::coroutine_handle<>) noexcept;

 protected:
  FinallyDoBase(Task<> cleanup, Duration grace) noexcept : grace_(grace), cleanup_(std::move(cleanup)) {}
  ~FinallyDoBase() = default;
  virtual void start_body(CancelToken& token) noexcept = 0;
  void take_cleanup() {
    if (cleanup_.finished()) cleanup_.take();
  }

 private:
  void branch_ended(Chain& branch, End end) noexcept override;
  void fire() noexcept override { shield_->cancel(Reason::deadline); }

  Duration grace_;
  std::optional<CancelToken> shield_;
  detail::Branch<void> cleanup_;
};
template <class T>
class FinallyDo final : public FinallyDoBase {
 public:
  FinallyDo(Task<T> body, Task<> cleanup, Duration grace) noexcept
      : FinallyDoBase(std::move(cleanup), grace), body_(std::move(body)) {}
  [[nodiscard]] T await_resume() {
    take_cleanup();
    return body_.take();
  }

 private:
  void start_body(CancelToken& token) noexcept override { body_.start(*this, token); }
  detail::Branch<T> body_;
};
template <class T>
[[nodiscard]] FinallyDo<T> finally_do(Task<T> body, Task<> cleanup, Duration grace) noexcept {
  return {std::move(body), std::move(cleanup), grace};
}

/// `co_await shield(task)`: no cancellation from above reaches the task. It has no deadline, so it must end by itself.
/// A stop that arrives meanwhile takes effect when the task has ended.
template <class T>
class Shield final : public detail::Combinator {
 public:
  explicit Shield(Task<T> task) noexcept : branch_(std::move(task)) {}
  void await_suspend(std::coroutine_handle<>) noexcept {
    park_shielded();
    shield_.emplace(executor());
    branch_.start(*this, *shield_);
  }
  [[nodiscard]] T await_resume() { return branch_.take(); }

 private:
  void branch_ended(Chain&, End) noexcept override { complete(); }
  std::optional<CancelToken> shield_;
  detail::Branch<T> branch_;
};
template <class T>
[[nodiscard]] Shield<T> shield(Task<T> task) noexcept {
  return Shield<T>(std::move(task));
}

}  // namespace stint
