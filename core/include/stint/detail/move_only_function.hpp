/// `std::move_only_function`, or a substitute where the standard library lacks it (libc++ 19).
#pragma once

#include "stint/detail/compiler.hpp"

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace stint::detail {

#if defined(__cpp_lib_move_only_function)

template <class Signature>
using MoveOnlyFunction = std::move_only_function<Signature>;

#else

template <class Signature>
class MoveOnlyFunction;

template <class R, class... Args>
class MoveOnlyFunction<R(Args...)> {
 public:
  MoveOnlyFunction() noexcept = default;
  MoveOnlyFunction(std::nullptr_t) noexcept {}  // NOLINT: as the standard's
  template <class Fn>
    requires(!std::is_same_v<std::remove_cvref_t<Fn>, MoveOnlyFunction> &&
             std::is_invocable_r_v<R, std::decay_t<Fn>&, Args...>)
  MoveOnlyFunction(Fn&& fn)  // NOLINT: as the standard's
      : target_(std::make_unique<Target<std::decay_t<Fn>>>(std::forward<Fn>(fn))) {}

  explicit operator bool() const noexcept { return target_ != nullptr; }
  R operator()(Args... args) { return target_->call(std::forward<Args>(args)...); }

 private:
  struct Callable {
    virtual ~Callable() = default;
    virtual R call(Args... args) = 0;
  };
  template <class Fn>
  struct Target final : Callable {
    template <class From>
    explicit Target(From&& from) : fn(std::forward<From>(from)) {}
    R call(Args... args) override { return std::invoke(fn, std::forward<Args>(args)...); }
    Fn fn;
  };
  std::unique_ptr<Callable> target_;
};

#endif

}  // namespace stint::detail
