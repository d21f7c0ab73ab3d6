/// How a stop travels. A *chain* is a line of frames that await one another, from the frame that a catcher started
/// down to the one *leaf* it is parked on. A *token* is a node of the cancel tree and knows the chains that obey it.
///
/// Cancelling marks the tokens of a subtree and tells each parked leaf (a thousand at a time, so that I/O is not held
/// up). A leaf gives up in its own time (unlinked, or its I/O handler has run) and then posts itself; from the run
/// loop, with no frame of the chain on the stack, it reports `End::stopped` to the chain, whose catcher destroys the
/// frames, leaf first. Nothing is thrown.
///
/// Everything here belongs to one executor's thread, so arming a wait is one store and disarming it another.
/// `Scope::cancel` is the door for other threads.
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

/// Level-triggered: once cancelled it stays so, and every later wait beneath it stops. A child born under a cancelled
/// parent is cancelled. A token without a parent is a shield: only its owner can cancel it.
class CancelToken : public detail::Link<CancelToken> {
 public:
  explicit CancelToken(Executor& executor) noexcept : executor_(&executor) {}
  explicit CancelToken(CancelToken& parent) noexcept;  // NOLINT: a child of it, not a copy
  ~CancelToken() { STINT_ASSERT(children_.empty()); }

  bool cancelled() const noexcept { return reason_ != Reason::none; }
  Reason reason() const noexcept { return reason_; }
  /// The text that the canceller gave, here or above; empty if none.
  std::string_view cause() const noexcept;
  Executor& executor() const noexcept { return *executor_; }
  /// The earliest of its own and its ancestors'.
  Deadline deadline() const noexcept { return deadline_; }
  Budget* budget() const noexcept { return budget_; }
  /// True for the token itself and everything above it.
  bool is_within(const CancelToken& ancestor) const noexcept;

  /// From here on every resume beneath this token, in tokens born later too, adds one to `pulse`, which must outlive
  /// them: how a watchdog sees life without being told.
  void watch_life(std::atomic<std::uint32_t>& pulse) noexcept {
    pulse_ = &pulse;
    plain_ = false;
  }

  /// Iterative: a tree may be 100,000 deep. The first reason stays. Own thread only.
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
  bool plain_ = true;        // neither cancelled, watched nor arbitrated: one look for all of them on every resume
  bool arbitrated_ = false;  // `Chain::may_resume` is asked; not inherited

 private:
  friend class WithDeadlineBase;
  friend class SelectBase;
};

class Chain : public Runnable, public detail::Link<Chain> {
 public:
  CancelToken& token() const noexcept { return *token_; }
  Executor& executor() const noexcept { return token_->executor(); }

  /// The root frame is at its end (called from its final suspend), or the leaf gave up (called from the run loop).
  virtual void ended(End end) noexcept = 0;
  /// The root frame let an exception out; `ended(End::finished)` follows.
  virtual void threw(std::exception_ptr error) noexcept = 0;
  /// The executor is going: destroy the frames, tell nobody.
  virtual void abandon() noexcept = 0;
  /// The chain that waits for this one through a combinator of the same executor; null at the top.
  virtual Chain* above() const noexcept { return nullptr; }
  /// False: the leaf has completed, but another branch is preferred, and this chain stops. Under an arbitrated token
  /// only.
  virtual bool may_resume(const Leaf& /*leaf*/) noexcept { return true; }

  Leaf* parked = nullptr;  // at most one: the frames above it all wait for it

 protected:
  Chain() = default;
  ~Chain() = default;
  void attach(CancelToken& token) noexcept {
    token_ = &token;
    token.chains_.push_back(*this);
  }
  static bool is_awaited_by(const Leaf& leaf, std::coroutine_handle<> frame) noexcept;
  /// Destroys the frames from the leaf up to and including the root, one after another: a chain may be 100,000 deep.
  void destroy_frames(std::coroutine_handle<> root) noexcept;
  /// At its end: mutexes whose guards it has passed on go to `heir`, or to nobody in particular.
  void leave_mutexes(Chain* heir) noexcept {
    if (executor().owners() != nullptr) leave_mutexes_slow(heir);
  }

 private:
  friend class Executor;
  void leave_mutexes_slow(Chain* heir) noexcept;
  CancelToken* token_ = nullptr;
};

/// What a chain is parked on. It lives in the frame that awaits it, and is bound to that frame by `await_transform`.
/// A frame runs only on its executor's thread, so `await_suspend` may still touch a leaf that it has just published:
/// whoever completes it can only queue it behind us.
class Leaf : public Runnable {
 public:
  /// Asks the leaf to complete early. On the executor's thread; must not resume anything, only post.
  virtual void cancel() noexcept = 0;
  /// True if it will resume without further events: its wait was decided, or its moment has come. Asked of a parked
  /// leaf, on the executor's thread. A leaf that can't tell says no, and `select` then takes it for ready when it runs.
  virtual bool ready() const noexcept { return false; }

  bool await_ready() const noexcept { return false; }  // even what is free must first look at the token
  void bind(PromiseBase& promise) noexcept;

 protected:
  Leaf() = default;
  ~Leaf() = default;

  /// True if the wait may begin; a chain that is already cancelled stops here instead.
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
