/// Runs one task to completion on its own reactor: before a service begins, and in tests.
#pragma once

#include "stint/asio.hpp"

#include <type_traits>

namespace stint::os {

template <class T>
T blocking_run(Reactor& reactor, Task<T> task) {
  if constexpr (std::is_same_v<detail::Flat<T>, T>) {
    return reactor.run(std::move(task));
  } else {
    return *reactor.run(std::move(task));  // only a scope could stop it, and there is none: it has a value
  }
}

inline void blocking_run(Reactor& reactor, Task<> task) {
  const Result<> ended = reactor.run(std::move(task));
  STINT_ASSERT(ended);
}

}  // namespace stint::os
