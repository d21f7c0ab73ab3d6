/// The single owner of concurrent work: children are spawned into a scope, cancelled together, and joined before it
/// ends.
///
/// Scopes nest by `with_scope` only. A stop destroys frames, so a scope must not be a coroutine's local: only the root
/// scope of an executor has a public constructor, which asserts that no frame is running. A cancelled scope stops every
/// descendant in one propagation. `cancel` may be called from any thread; everything else belongs to the executor's
/// thread. A child that fails or throws cancels its siblings, unless the options say otherwise.
#pragma once

#include "stint/combinators.hpp"
#include "stint/detail/branch.hpp"

#include <atomic>
#include <string>

namespace stint {

struct ScopeOptions {
  Deadline deadline = {};
  Budget* budget = nullptr;     ///< must outlive the scope; null: the parent's
  bool cancel_on_error = true;  ///< the first failure cancels the siblings
};

class Scope : public CancelToken {
 public:
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  /// Starts a child. Returns false, and destroys the task unstarted, if the scope is closed. A child of a cancelled
  /// scope is never started.
  bool spawn(Task<> task) { return spawn_child<void>(std::move(task)); }
  bool spawn(Task<Result<>> task) { return spawn_child<Result<>>(std::move(task)); }
  /// Starts a child that calls `fn` and awaits the task it returns. `fn` lives as long as the child, so a lambda that
  /// is itself a coroutine may capture: `scope.spawn([slot = std::move(slot)]() -> Task<> { … })`.
  template <class Fn>
    requires std::invocable<Fn&>
  bool spawn(Fn fn) {
    return spawn(detail::call(std::move(fn)));
  }

  /// May be called from any thread. From another thread than the executor's it posts one request; only the first
  /// counts. The scope must outlive the call, but not the posted request.
  void cancel(Reason reason = Reason::user, std::string cause = {}) noexcept;
  /// Refuses new children from here on; running children are not affected.
  void close() noexcept { closed_ = true; }

  /// `co_await scope.join()`: waits until no child is left, including children spawned meanwhile. The waiting coroutine
  /// must not be a child of the scope. Any number of coroutines may wait.
  class Join;
  [[nodiscard]] Join join() noexcept;

  /// No child is left, and no cancel request from another thread is pending.
  bool idle() const noexcept { return running_ == 0 && request_.load(std::memory_order_acquire) == nullptr; }
  std::size_t running() const noexcept { return running_; }
  /// The first failure or exception of a child.
  const std::optional<Error>& error() const noexcept { return error_; }
  std::exception_ptr exception() const noexcept { return exception_; }

  /// The error of a cancelled scope: `timed_out` if a deadline cancelled it, else `cancelled`, with the cause.
  [[nodiscard]] Error stop_error() const;
  /// How an idle scope ended: its first failure, or `stop_error` if it was cancelled. Rethrows a child's exception.
  [[nodiscard]] Result<> outcome() const;

 protected:
  Scope(Executor& executor, const ScopeOptions& options) noexcept;
  Scope(CancelToken& parent, const ScopeOptions& options) noexcept;
  ~Scope();

  void fail(Error error) noexcept;
  void fail(std::exception_ptr exception) noexcept;
  void abandon_children() noexcept;
  void check_idle() noexcept;

 private:
  template <class T>
  class Child;
  template <class Open>
  friend class WithScope;
  /// A cancel request from another thread. Owned by the executor's queue, so the scope may be destroyed before it runs.
  struct CancelRequest final : Runnable {
    CancelRequest(Scope& owner, Reason why, std::string text) noexcept
        : scope(&owner), cause(std::move(text)), reason(why) {}
    void run() noexcept override;
    void dropped() noexcept override;
    Scope* scope;  // null: destroyed
    std::string cause;
    Reason reason;
  };

  template <class T>
  bool spawn_child(Task<T> task);
  /// Children of a root scope count as work of its executor.
  void child_began() noexcept {
    if (running_++ == 0 && parent_ == nullptr) executor_->begin_work();
  }
  void child_ended() noexcept {
    if (--running_ == 0 && parent_ == nullptr) executor_->end_work();
  }

  std::atomic<CancelRequest*> request_ = nullptr;
  detail::List<Join> joiners_;
  Runnable* on_idle_ = nullptr;  // the with_scope that owns this scope and waits for it
  std::size_t running_ = 0;
  std::optional<Error> error_;
  std::exception_ptr exception_;
  bool closed_ = false;
  bool cancel_on_error_ = true;
};

/// The root of an executor's cancel tree. When destroyed it must be idle, or its executor already destroyed.
class RootScope final : public Scope, private ExecutorRoot, private Timer {
 public:
  explicit RootScope(Executor& executor, const ScopeOptions& options = ScopeOptions()) noexcept;
  ~RootScope();

 private:
  void abandon() noexcept override { abandon_children(); }
  bool at_rest() const noexcept override { return running() == 0; }
  void fire() noexcept override { CancelToken::cancel(Reason::deadline); }
};

class Scope::Join final : public Leaf, public detail::Link<Scope::Join> {
 public:
  explicit Join(Scope& scope) noexcept : scope_(scope) {}
  void await_suspend(std::coroutine_handle<>) noexcept {
    if (!park()) return;
    scope_.joiners_.push_back(*this);
    scope_.check_idle();
  }
  void await_resume() const noexcept {}

 private:
  friend class Scope;
  bool ready() const noexcept override { return !linked(); }
  void cancel() noexcept override {
    if (!linked()) return;  // the scope became idle, and this is already queued
    unlink();
    complete();
  }
  Scope& scope_;
};
inline Scope::Join Scope::join() noexcept { return Join(*this); }

/// Owns itself while it is linked into its scope.
template <class T>
class Scope::Child final : public Chain {
 public:
  Child(Scope& scope, Task<T> task) noexcept : root_(task.release()) { attach(scope); }

 private:
  Scope& scope() const noexcept { return static_cast<Scope&>(token()); }
  void run() noexcept override {
    if (token().cancelled()) return ended(End::stopped);
    root_.promise().chain = this;
    root_.resume();
  }
  void ended(End end) noexcept override {
    Scope& owner = scope();
    if constexpr (detail::IsResult<T>::value) {
      if (end == End::finished && root_.promise().has(PromiseBase::kValue) && !root_.promise().value) {
        owner.fail(std::move(root_.promise().value).error());
      }
    }
    abandon();
    owner.child_ended();
    owner.check_idle();
  }
  void threw(std::exception_ptr error) noexcept override { scope().fail(std::move(error)); }
  void abandon() noexcept override {
    destroy_frames(root_);
    leave_mutexes(nullptr);
    delete this;
  }

  std::coroutine_handle<Promise<T>> root_;
};

template <class T>
bool Scope::spawn_child(Task<T> task) {
  STINT_ASSERT(executor_->is_current());
  if (closed_) return false;
  auto child = std::make_unique<Child<T>>(*this, std::move(task));
  child_began();
  executor_->post(*child.release());
  return true;
}

/// `co_await with_scope(open)`, `co_await with_scope(options, open)`: runs `open(scope)`, a task or a plain function,
/// and everything it spawns, and completes when all of it has ended. Returns the value of `open`, the first failure of
/// a child, or `cancelled` / `timed_out` if this scope itself was cancelled or its deadline passed. A stop from above
/// propagates. Rethrows the first exception. `open` is called once and lives until the end.
template <class Open>
class WithScope final : public detail::Combinator, private Timer {
 public:
  using T = typename std::invoke_result_t<Open&, Scope&>::value_type;

  WithScope(ScopeOptions options, Open open) : options_(options), open_(std::move(open)) {}
  void await_suspend(std::coroutine_handle<>) {
    if (!park()) return;
    scope_.emplace(token(), options_);
    try {
      body_.emplace(open_(*scope_));
    } catch (...) {
      unpark();  // the frame continues with the exception
      throw;
    }
    if (!options_.deadline.is_never()) executor().arm(*this, options_.deadline.when());
    ++scope_->running_;
    body_->start(*this, *scope_);
  }
  detail::Flat<T> await_resume() {
    if (body_->threw()) (void)body_->take();  // throws
    if (scope_->exception()) std::rethrow_exception(scope_->exception());
    if (scope_->error()) return std::unexpected(*scope_->error());
    if (!body_->finished() || scope_->reason() == Reason::deadline) return std::unexpected(scope_->stop_error());
    if constexpr (std::is_void_v<T>) {
      return {};
    } else {
      return body_->take();
    }
  }

 private:
  class Inner final : public Scope {
   public:
    Inner(CancelToken& parent, const ScopeOptions& options) noexcept : Scope(parent, options) {}
  };
  void branch_ended(Chain&, End) noexcept override {
    if ((body_->threw() || body_->failed()) && scope_->cancel_on_error_) {
      scope_->CancelToken::cancel(Reason::sibling_failed);
    }
    --scope_->running_;
    scope_->on_idle_ = this;
    scope_->check_idle();
  }
  void fire() noexcept override {
    if (!scope_->idle()) scope_->CancelToken::cancel(Reason::deadline);
  }

  ScopeOptions options_;
  Open open_;
  std::optional<detail::Branch<T>> body_;
  std::optional<Inner> scope_;  // destroyed before the body, whose locals its children may use
};
template <class Open>
[[nodiscard]] auto with_scope(ScopeOptions options, Open open) {
  if constexpr (std::is_void_v<std::invoke_result_t<Open&, Scope&>>) {
    auto task = [open = std::move(open)](Scope& scope) mutable -> Task<> {
      open(scope);
      co_return;
    };
    return WithScope<decltype(task)>(options, std::move(task));
  } else {
    return WithScope<Open>(options, std::move(open));
  }
}
template <class Open>
[[nodiscard]] auto with_scope(Open open) {
  return with_scope(ScopeOptions(), std::move(open));
}

}  // namespace stint

#include "stint/map_bounded.hpp"
