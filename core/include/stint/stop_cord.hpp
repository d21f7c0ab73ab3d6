/// A cord by which somebody who is no part of the work stops it: `co_await on_cord(cord, task)`.
/// What `race(task, gone())` does, without a second branch that is started, waits and is stopped each time: who sees
/// the event pulls. Once pulled it stays so, and what begins later is not started. Any number of tasks may hang on one
/// cord. Own thread only; must outlive what hangs on it.
#pragma once

#include "stint/combinators.hpp"

#include <string>

namespace stint {

class StopCord {
 public:
  /// What those get whose work was stopped. `why` is a literal.
  StopCord(Errc code, std::string_view why) noexcept : why_(why), code_(code) {}
  ~StopCord() { STINT_ASSERT(holders_.empty()); }
  StopCord(const StopCord&) = delete;
  StopCord& operator=(const StopCord&) = delete;

  void pull() noexcept;
  bool pulled() const noexcept { return pulled_; }
  /// Something hangs on it at the moment.
  bool held() const noexcept { return !holders_.empty(); }

 private:
  friend class OnCordBase;
  detail::List<class OnCordBase> holders_;
  std::string_view why_;
  Errc code_;
  bool pulled_ = false;
};

class OnCordBase : public detail::Combinator, public detail::Link<OnCordBase> {
 protected:
  explicit OnCordBase(StopCord& cord) noexcept : cord_(cord) {}
  ~OnCordBase() = default;
  /// Null if there is nothing to begin: stopped already.
  CancelToken* begin() noexcept;
  [[nodiscard]] Error stopped() const { return {cord_.code_, std::string(cord_.why_)}; }

 private:
  friend class StopCord;
  void branch_ended(Chain& branch, End end) noexcept override;

  StopCord& cord_;
  std::optional<CancelToken> token_;
};

/// `co_await on_cord(cord, task)` → what the task gives, or the cord's error if it was pulled, and then the task is
/// stopped and gone. A result that is there before the pull wins.
template <class T>
class OnCord final : public OnCordBase {
 public:
  OnCord(StopCord& cord, Task<T> task) noexcept : OnCordBase(cord), branch_(std::move(task)) {}
  void await_suspend(std::coroutine_handle<>) noexcept {
    if (CancelToken* const beneath = begin()) branch_.start(*this, *beneath);
  }
  detail::Flat<T> await_resume() {
    if (!branch_.finished()) return std::unexpected(stopped());
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
[[nodiscard]] OnCord<T> on_cord(StopCord& cord, Task<T> task) noexcept {
  return {cord, std::move(task)};
}

}  // namespace stint
