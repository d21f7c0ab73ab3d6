/// `Deadline`: an absolute time after which work is no longer wanted. A value: pass it down, shorten it, never extend
/// it.
#pragma once

#include "stint/time.hpp"

#include <algorithm>
#include <compare>

namespace stint {

class Deadline {
 public:
  constexpr Deadline() noexcept = default;  ///< never
  constexpr explicit Deadline(TimePoint when) noexcept : when_(when) {}
  static constexpr Deadline never() noexcept { return {}; }
  /// Saturates: a timeout of `Duration::max()` gives `never()`; one that is not positive has already passed.
  static constexpr Deadline after(TimePoint now, Duration timeout) noexcept {
    return timeout >= TimePoint::max() - now ? never() : Deadline(now + timeout);
  }

  constexpr TimePoint when() const noexcept { return when_; }
  constexpr bool is_never() const noexcept { return when_ == TimePoint::max(); }
  constexpr bool passed(TimePoint now) const noexcept { return now >= when_; }
  /// Time left; zero once passed, `Duration::max()` for never.
  constexpr Duration remaining(TimePoint now) const noexcept {
    return is_never() ? Duration::max() : std::max(when_ - now, Duration::zero());
  }
  /// The earlier of the two; a callee uses it to shorten the deadline it was given.
  constexpr Deadline sooner(Deadline other) const noexcept { return when_ <= other.when_ ? *this : other; }

  friend constexpr auto operator<=>(Deadline, Deadline) noexcept = default;

 private:
  TimePoint when_ = TimePoint::max();
};

}  // namespace stint
