/// Arithmetic on the times of a store: whole milliseconds, lengths rounded up, so that a wait is never too short.
#pragma once

#include "stint/time.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <type_traits>

namespace stint::store {

template <class Time>
[[nodiscard]] Time later(Time time, Duration by) {
  return time + std::chrono::ceil<std::chrono::milliseconds>(by);
}

/// The earlier one; none counts as never.
template <class Time>
[[nodiscard]] std::optional<Time> sooner(std::optional<Time> a, std::type_identity_t<std::optional<Time>> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

}  // namespace stint::store
