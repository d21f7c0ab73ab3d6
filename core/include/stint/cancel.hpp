/// Cancellation. A *chain* is a line of frames that await one another, from the frame that a catcher started down to
/// the one *leaf* it is parked on. A *token* is a node of the cancel tree and lists the chains below it.
///
/// Cancelling marks the tokens of a subtree and asks each parked leaf to cancel, a thousand at a time, so that I/O is
/// not delayed. A leaf completes asynchronously (it is unlinked, or its I/O handler has run) and then posts itself.
/// From the run loop, with no frame of the chain on the stack, it reports `End::stopped` to the chain, and the chain's
/// catcher destroys the frames, leaf first. No exception is thrown.
///
/// Everything here belongs to one executor's thread, so arming a wait is one store and disarming it another. Other
/// threads cancel through `Scope::cancel`.
#pragma once

#include "stint/deadline.hpp"
#include "stint/executor.hpp"

#include <coroutine>
#include <memory>
#include <string>
#include <string_view>

namespace stint {

class Budget;
class Chain;
class Leaf;
struct PromiseBase;

/// Why a scope was cancelled; the text given with it is `CancelToken::cause()`.
enum class Reason : std::uint8_t { none, user, deadline, lost_race, sibling_failed, shutdown };
[[nodiscard]] std::string_view to_string(Reason reason) noexcept;

enum class End : std::uint8_t { finished, stopped };

/// Level-triggered: a cancelled token stays cancelled, and every later wait beneath it stops. A child of a cancelled
/// parent starts cancelled. A token without a parent is a shield: only its owner can cancel it.
class CancelToken : public detail::Link<CancelToken> {
 public:
  explicit CancelToken(Executor& executor) noexcept : executor_(&executor) {}
  explicit CancelToken(CancelToken& parent) noexcept;  // NOLINT: a child of it, not a copy
  ~CancelToken() { STINT_ASSERT(children_.empty()); }

  bool cancelled() const noexcept { return reason_ != Reason::none; }
  Reason reason() const noexcept { return reason_; }
  /// The text passed to `cancel`, here or in an ancestor; empty if none.
  std::string_view cause() const noexcept;
  Executor& executor() const noexcept { return *executor_; }
  /// The earliest deadline of this token and its ancestors.
  Deadline deadline() const noexcept { return deadline_; }
  Budget* budget() const noexcept { return budget_; }
  /// True if `ancestor` is this token or one of its ancestors.
  bool is_within(const CancelToken& ancestor) const noexcept;

  /// From here on every resume beneath this token, including tokens created later, increments `pulse`, which must
  /// outlive them. Lets a watchdog detect progress without explicit heartbeats.
  void count_resumes(std::atomic<std::uint32_t>& pulse) noexcept {
    pulse_ = &pulse;
    plain_ = false;
  }

  /// Iterative, since a tree may be 100,000 levels deep. The first reason is kept. Own thread only.
  void cancel(Reason reason, std::string cause = {}) noexcept;

 protected:
  friend class Chain;
  friend class Executor;
  friend class Leaf;
  CancelToken* next_below(CancelToken& top) noexcept;
  void shorten(Deadline deadline) noexcept { deadline_ = deadline_.sooner(deadline); }
  void arbitrate() noexcept {
    arbitrated_ = true;
    plain_ = false;
  }
  void draw_on(Budget* budget) noexcept { budget_ = budget; }

  Executor* executor_;  // null once the executor has abandoned this scope
  CancelToken* parent_ = nullptr;
  detail::List<CancelToken> children_;
  detail::List<Chain> chains_;
  Deadline deadline_;
  Budget* budget_ = nullptr;
  std::atomic<std::uint32_t>* pulse_ = nullptr;
  std::unique_ptr<std::string> cause_;
  Reason reason_ = Reason::none;
  bool plain_ = true;        // neither cancelled, watched nor arbitrated: one check for all three on every resume
  bool arbitrated_ = false;  // `Chain::may_resume` decides; not inherited

 private:
  friend class WithDeadlineBase;
  friend class SelectBase;
};

class Chain : public Runnable, public detail::Link<Chain> {
 public:
  CancelToken& token() const noexcept { return *token_; }
  Executor& executor() const noexcept { return token_->executor(); }

  /// The root frame finished (called from its final suspend), or its leaf was stopped (called from the run loop).
  virtual void ended(End end) noexcept = 0;
  /// The root frame threw; `ended(End::finished)` follows.
  virtual void threw(std::exception_ptr error) noexcept = 0;
  /// The executor is being destroyed: destroy the frames without notifying the owner.
  virtual void abandon() noexcept = 0;
  /// The chain that waits for this one through a combinator of the same executor; null at the top.
  virtual Chain* above() const noexcept { return nullptr; }
  /// False if the leaf has completed but another branch is preferred; the chain then stops. Under an arbitrated token
  /// only.
  virtual bool may_resume(const Leaf& /*leaf*/) noexcept { return true; }

  Leaf* parked = nullptr;  // at most one: all frames above wait for it

 protected:
  Chain() = default;
  ~Chain() = default;
  void attach(CancelToken& token) noexcept {
    token_ = &token;
    token.chains_.push_back(*this);
  }
  static bool is_awaited_by(const Leaf& leaf, std::coroutine_handle<> frame) noexcept;
  /// Destroys the frames from the leaf up to and including the root, iteratively: a chain may be 100,000 frames deep.
  void destroy_frames(std::coroutine_handle<> root) noexcept;
  /// Called at the chain's end. Mutexes it still owns, because it moved their guards elsewhere, pass to `successor`, or
  /// are left without an owner if `successor` is null.
  void leave_mutexes(Chain* successor) noexcept {
    if (executor().owners() != nullptr) leave_mutexes_slow(successor);
  }

 private:
  friend class Executor;
  void leave_mutexes_slow(Chain* successor) noexcept;
  CancelToken* token_ = nullptr;
};

/// The operation a chain is parked on. It lives in the frame that awaits it and is bound to that frame by
/// `await_transform`. A frame runs only on its executor's thread, so `await_suspend` may still touch a leaf that it has
/// just published: completing it only queues it behind the running frame.
class Leaf : public Runnable {
 public:
  /// Asks the leaf to complete early. On the executor's thread; must only post, never resume.
  virtual void cancel() noexcept = 0;
  /// True if it will resume without further events: its wait was decided, or its time has come. Called for parked
  /// leaves, on the executor's thread. A leaf that can't tell returns false; `select` then treats it as ready when it
  /// runs.
  virtual bool ready() const noexcept { return false; }

  bool await_ready() const noexcept { return false; }  // the token is checked first, even if the resource is free
  void bind(PromiseBase& promise) noexcept;

 protected:
  Leaf() = default;
  ~Leaf() = default;

  /// Returns true if the wait may begin; a chain that is already cancelled stops here instead.
  bool park() noexcept;
  void park_shielded() noexcept;
  void unpark() noexcept { chain().parked = nullptr; }
  void complete() noexcept { executor().post(*this); }
  Chain& chain() const noexcept;
  CancelToken& token() const noexcept { return chain().token(); }
  Executor& executor() const noexcept { return chain().executor(); }

 private:
  friend class Chain;
  void run() final;
  void run_watched(CancelToken& token);

  std::coroutine_handle<> awaiting_;
};

}  // namespace stint
