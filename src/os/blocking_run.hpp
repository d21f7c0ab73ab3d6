/// Runs one task to its end, on a reactor that does nothing else meanwhile: before a service begins, and in tests.
#pragma once

#include "stint/asio.hpp"

#include <type_traits>

namespace stint::os {

template <class T>
T blocking_run(Reactor& reactor, Task<T> task) {
  if constexpr (std::is_same_v<detail::Flat<T>, T>) {
    return reactor.run(std::move(task));
  } else {
    return *reactor.run(std::move(task));  // only a scope of its own could stop it: there is a value
  }
}

inline void blocking_run(Reactor& reactor, Task<> task) {
  const Result<> ended = reactor.run(std::move(task));
  STINT_ASSERT(ended);
}

}  // namespace stint::os
