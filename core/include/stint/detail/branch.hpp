/// Chains started by an owner: `Branch` beneath a combinator; `Scope::Child` beneath a scope is in `stint/scope.hpp`.
#pragma once

#include "stint/error.hpp"
#include "stint/task.hpp"

#include <memory>
#include <optional>
#include <type_traits>
#include <variant>

namespace stint::detail {

template <class T>
struct IsResult : std::false_type {};
template <class T>
struct IsResult<Result<T>> : std::true_type {};

/// `Result<T>`; a `Result` is not wrapped again.
template <class T>
using Flat = std::conditional_t<IsResult<T>::value, T, Result<T>>;

/// `T`, with void replaced by monostate, for tuples and variants.
template <class T>
using Regular = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

/// Receives the end of the branches that it owns.
class BranchOwner {
 public:
  virtual void branch_ended(Chain& branch, End end) noexcept = 0;
  /// True if the root frame of `branch` may continue. Called under an arbitrated token only.
  virtual bool may_resume(const Chain& /*branch*/) noexcept { return true; }
  /// The chain that waits for the branches, if it runs on the same executor.
  virtual Chain* waiting_chain() const noexcept { return nullptr; }

 protected:
  BranchOwner() = default;
  ~BranchOwner() = default;
};

/// A chain whose root frame is a task.
template <class T>
class Branch final : public Chain {
 public:
  Branch(Task<T> task) noexcept : root_(task.release()) {}  // NOLINT: constructed in place inside tuples
  ~Branch() {
    if (root_) destroy_frames(root_);
  }
  Branch(const Branch&) = delete;
  Branch& operator=(const Branch&) = delete;

  void start(BranchOwner& owner, CancelToken& token) noexcept {
    owner_ = &owner;
    attach(token);
    executor().post(*this);
  }
  /// The same, but runs at once; only from the run loop.
  void start_now(BranchOwner& owner, CancelToken& token) noexcept {
    owner_ = &owner;
    attach(token);
    run();
  }
  /// Its root frame awaits an operation that has completed.
  bool ready() const noexcept { return parked != nullptr && is_awaited_by(*parked, root_) && parked->ready(); }
  bool finished() const noexcept { return finished_; }
  bool threw() const noexcept { return thrown_ != nullptr; }
  /// Finished with an error value.
  bool failed() const noexcept {
    if constexpr (IsResult<T>::value) {
      return finished_ && !thrown_ && !root_.promise().value.has_value();
    } else {
      return false;
    }
  }
  T take() {
    if (thrown_) std::rethrow_exception(thrown_);
    return root_.promise().take();
  }
  Regular<T> take_regular() {
    if constexpr (std::is_void_v<T>) {
      take();
      return {};
    } else {
      return take();
    }
  }

 private:
  void run() noexcept override {
    if (token().cancelled()) return ended(End::stopped);
    root_.promise().chain = this;
    root_.resume();
  }
  void ended(End end) noexcept override {
    finished_ = end == End::finished;
    if (!finished_) destroy_frames(std::exchange(root_, {}));
    leave_mutexes(above());
    unlink();
    owner_->branch_ended(*this, end);
  }
  void threw(std::exception_ptr error) noexcept override { thrown_ = std::move(error); }
  void abandon() noexcept override {
    unlink();
    destroy_frames(std::exchange(root_, {}));
    leave_mutexes(nullptr);
  }
  Chain* above() const noexcept override { return owner_->waiting_chain(); }
  bool may_resume(const Leaf& leaf) noexcept override {
    return !is_awaited_by(leaf, root_) || owner_->may_resume(*this);
  }

  BranchOwner* owner_ = nullptr;
  std::coroutine_handle<Promise<T>> root_;
  std::exception_ptr thrown_;
  bool finished_ = false;
};

/// A leaf that waits for the branches beneath it. Cancellation reaches them through the token tree, so its own `cancel`
/// does nothing; it completes when everything beneath it is destroyed.
class Combinator : public Leaf, protected BranchOwner {
 protected:
  Combinator() = default;
  ~Combinator() = default;
  void cancel() noexcept final {}
  Chain* waiting_chain() const noexcept final { return &chain(); }
};

}  // namespace stint::detail
