/// `co_await all(tasks)`: runs every task of a vector concurrently. The first that throws or fails stops the others.
/// Returns the values in the order of the tasks: `std::vector<T>`, or `Result<std::vector<T>>` if the tasks return
/// `Result<T>`; void or `Result<>` for tasks without a value. An empty vector completes at once. To bound how many run
/// at a time, use `map_bounded`.
#pragma once

#include "stint/detail/branch.hpp"

#include <deque>
#include <optional>
#include <vector>

namespace stint {

namespace detail {

template <class T>
struct AllValue {
  using type = T;
};
template <class T>
struct AllValue<Result<T>> {
  using type = T;
};
template <class T>
using AllValues = std::conditional_t<std::is_void_v<T>, void, std::vector<Regular<T>>>;

}  // namespace detail

template <class T>
class AllOf final : public detail::Combinator {
  using Value = typename detail::AllValue<T>::type;
  using Values = detail::AllValues<Value>;
  static constexpr bool kFallible = detail::IsResult<T>::value;

 public:
  using Outcome = std::conditional_t<kFallible, Result<Values>, Values>;

  explicit AllOf(std::vector<Task<T>> tasks) : running_(tasks.size()) {
    for (Task<T>& task : tasks) branches_.emplace_back(std::move(task));
  }
  AllOf(AllOf&&) = delete;

  void await_suspend(std::coroutine_handle<>) noexcept {
    if (!park()) return;
    if (branches_.empty()) return complete();
    token_.emplace(token());
    for (detail::Branch<T>& branch : branches_) branch.start(*this, *token_);
  }
  Outcome await_resume() {
    if (first_bad_ != nullptr) {
      if constexpr (kFallible)
        return std::unexpected(first_bad_->take().error());  // or throws
      else
        (void)first_bad_->take_regular();  // throws
    }
    if constexpr (std::is_void_v<Value>) {
      return Outcome();
    } else {
      Values values;
      values.reserve(branches_.size());
      for (detail::Branch<T>& branch : branches_) {
        if constexpr (kFallible) {
          values.push_back(*branch.take());
        } else {
          values.push_back(branch.take());
        }
      }
      return values;
    }
  }

 private:
  void branch_ended(Chain& ended, End end) noexcept override {
    auto& branch = static_cast<detail::Branch<T>&>(ended);
    if (end == End::finished && first_bad_ == nullptr && (branch.threw() || branch.failed())) {
      first_bad_ = &branch;
      token_->cancel(Reason::sibling_failed);
    }
    if (--running_ == 0) complete();
  }

  std::optional<CancelToken> token_;
  std::deque<detail::Branch<T>> branches_;  // a deque, since a chain can't be moved
  std::size_t running_;
  detail::Branch<T>* first_bad_ = nullptr;
};
template <class T>
[[nodiscard]] AllOf<T> all(std::vector<Task<T>> tasks) {
  return AllOf<T>(std::move(tasks));
}

}  // namespace stint
