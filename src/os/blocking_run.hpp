/// Runs one task to its end, on a reactor that does nothing else meanwhile: before a service begins, and in tests.
#pragma once

#include "stint/asio.hpp"
#include "stint/scope.hpp"

#include <optional>

namespace stint::os {

template <class T>
T blocking_run(Reactor& reactor, Task<T> task) {
  std::optional<T> result;
  auto body = [&]() -> Task<> { result.emplace(co_await std::move(task)); };
  RootScope scope(reactor);
  scope.spawn(body());
  reactor.run(scope);
  return std::move(*result);
}

inline void blocking_run(Reactor& reactor, Task<> task) {
  RootScope scope(reactor);
  scope.spawn(std::move(task));
  reactor.run(scope);
}

}  // namespace stint::os
