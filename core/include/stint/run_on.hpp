/// `co_await run_on(executor, task)`: runs a task on another executor's thread and comes back with what it gave. The
/// cancel tree of one executor ends at its thread; this is the bridge: a cancel here is posted there, and the wait ends
/// only when the task is gone. What the task's frames own is destroyed on the other thread, its result on this one.
///
/// The calling executor must outlive the call, the other one its beginning. Deadline and budget of the caller go along.
/// If the other executor is destroyed before the task has ended there, started or not, the answer is `closed`.
#pragma once

#include "stint/detail/branch.hpp"
#include "stint/detail/brief_mutex.hpp"

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
    void dropped() noexcept override { self.executor_gone(); }
    RunOnBase& self;
  };
  struct CancelThere final : Runnable {
    explicit CancelThere(RunOnBase& owner) noexcept : self(owner) {}
    void run() noexcept override;
    void dropped() noexcept override { self.let_go(); }
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
  void abandon() noexcept override { executor_gone(); }
  bool ready() const noexcept override { return references_.load(std::memory_order_acquire) == 0; }
  void executor_gone() noexcept;
  void leave_there() noexcept;
  void let_go() noexcept;

  Executor& there_;
  Executor* here_ = nullptr;
  Start start_{*this};
  CancelThere cancel_{*this};
  detail::BriefMutex mutex_;         // while a cancel holds it, the other executor can't go
  bool left_there_ = false;          // under the lock: the other executor may be gone
  std::optional<Token> token_;       // the other thread's
  bool cancelled_ = false;           // the other thread's: a cancel that came before the start
  std::atomic<int> references_ = 0;  // the task, and a cancel on its way: the last to let go comes back
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
      outcome_.emplace(fail(Errc::closed, "the executor was destroyed before the task had ended"));
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
