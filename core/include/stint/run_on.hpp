/// `co_await run_on(executor, task)`: runs a task on another executor's thread and returns its result. A cancel tree is
/// bound to one executor; this bridges two: cancellation here is posted there, and the wait ends only when the task is
/// destroyed. Objects owned by the task's frames are destroyed on the other thread, its result on this one.
///
/// The calling executor must outlive the call; the other one must outlive its start. The caller's deadline and budget
/// apply. If the other executor is destroyed before the task has ended, started or not, the result is `closed`.
#pragma once

#include "stint/detail/branch.hpp"
#include "stint/detail/spin_mutex.hpp"

#include <atomic>
#include <optional>

namespace stint {

class RunOnBase : public Leaf, protected detail::BranchOwner, private ExecutorRoot {
 public:
  void await_suspend(std::coroutine_handle<>) noexcept;

 protected:
  explicit RunOnBase(Executor& there) noexcept : there_(there) {}
  ~RunOnBase();
  /// On the other thread: start the branch; afterwards store its outcome and destroy it.
  virtual void start_there(CancelToken& token) noexcept = 0;
  virtual void finish_there(bool abandoned) noexcept = 0;

 private:
  struct Start final : Runnable {
    explicit Start(RunOnBase& owner) noexcept : self(owner) {}
    void run() noexcept override;
    void dropped() noexcept override { self.executor_destroyed(); }
    RunOnBase& self;
  };
  struct CancelThere final : Runnable {
    explicit CancelThere(RunOnBase& owner) noexcept : self(owner) {}
    void run() noexcept override;
    void dropped() noexcept override { self.drop_reference(); }
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
  void abandon() noexcept override { executor_destroyed(); }
  bool ready() const noexcept override { return references_.load(std::memory_order_acquire) == 0; }
  void executor_destroyed() noexcept;
  void leave_there() noexcept;
  void drop_reference() noexcept;

  Executor& there_;
  Executor* here_ = nullptr;
  Start start_{*this};
  CancelThere cancel_{*this};
  detail::SpinMutex mutex_;          // while cancel() holds it, the other executor can't be destroyed
  bool left_there_ = false;          // under the lock: the other executor may be destroyed
  std::optional<Token> token_;       // accessed by the other thread only
  bool cancelled_ = false;           // accessed by the other thread only: cancelled before the start
  std::atomic<int> references_ = 0;  // the task, and a posted cancel: dropping the last one resumes the caller
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
