/// `co_await run_on(executor, task)`: runs a task on another executor's thread and comes back with what it gave. The
/// cancel tree of one executor ends at its thread; this is the bridge: a cancel here is posted there, and the wait ends
/// only when the task is gone. What the task's frames own is destroyed on the other thread, its result on this one.
///
/// Both executors must outlive the call. Deadline and budget of the caller go along. If the other executor is destroyed
/// while the task runs there, the answer is `closed`.
#pragma once

#include "stint/detail/branch.hpp"

#include <atomic>
#include <optional>

namespace stint {

class RunOnBase : public Leaf, protected detail::BranchOwner, private ExecutorRoot {
 public:
  void await_suspend(std::coroutine_handle<>) noexcept;

 protected:
  explicit RunOnBase(Executor& there) noexcept : there_(there) {}
  ~RunOnBase();
  /// On the other thread: begin; and afterwards keep the outcome and let go of the branch.
  virtual void start_there(CancelToken& token) noexcept = 0;
  virtual void finish_there(bool abandoned) noexcept = 0;

 private:
  struct Start final : Runnable {
    explicit Start(RunOnBase& owner) noexcept : self(owner) {}
    void run() noexcept override;
    RunOnBase& self;
  };
  struct CancelThere final : Runnable {
    explicit CancelThere(RunOnBase& owner) noexcept : self(owner) {}
    void run() noexcept override;
    RunOnBase& self;
  };
  class Token final : public CancelToken {
   public:
    Token(Executor& executor, const CancelToken& like) noexcept : CancelToken(executor) {
      shorten(like.deadline());
      draw_on(like.budget());
    }
  };

  void cancel() noexcept override;
  void branch_ended(Chain& branch, End end) noexcept override;
  void abandon() noexcept override;
  void let_go() noexcept;

  Executor& there_;
  Executor* here_ = nullptr;
  Start start_{*this};
  CancelThere cancel_{*this};
  std::optional<Token> token_;       // the other thread's
  std::atomic<int> references_ = 0;  // the task, and a cancel on its way: who lets go last comes back
};

template <class T>
class RunOn final : public RunOnBase {
 public:
  RunOn(Executor& there, Task<T> task) noexcept : RunOnBase(there), branch_(std::in_place, std::move(task)) {}
  detail::Flat<T> await_resume() {
    if (thrown_) std::rethrow_exception(thrown_);
    return std::move(*outcome_);
  }

 private:
  void start_there(CancelToken& token) noexcept override { branch_->start(*this, token); }
  void finish_there(bool abandoned) noexcept override {
    if (abandoned) {
      outcome_.emplace(fail(Errc::closed, "the executor that ran the task was destroyed"));
    } else if (!branch_->finished()) {
      outcome_.emplace(fail(Errc::cancelled, "the task was cancelled on its executor"));
    } else {
      take();
    }
    branch_.reset();
  }
  void take() noexcept {
    try {
      if constexpr (std::is_void_v<T>) {
        branch_->take();
        outcome_.emplace();
      } else {
        outcome_.emplace(branch_->take());
      }
    } catch (...) {
      thrown_ = std::current_exception();
    }
  }

  std::optional<detail::Branch<T>> branch_;
  std::optional<detail::Flat<T>> outcome_;
  std::exception_ptr thrown_;
};
template <class T>
[[nodiscard]] RunOn<T> run_on(Executor& there, Task<T> task) noexcept {
  return {there, std::move(task)};
}

}  // namespace stint
