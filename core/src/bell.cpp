#include "stint/bell.hpp"

#include "stint/combinators.hpp"

namespace stint {
namespace {

Task<> nap(Duration length) { co_await sleep_for(length); }

}  // namespace

void Bell::Listener::await_suspend(std::coroutine_handle<>) noexcept {
  if (park()) bell_.listeners_.push_back(*this);
}

void Bell::Listener::cancel() noexcept {
  if (!linked()) return;  // it has rung, and this is queued
  unlink();
  complete();
}

void Bell::ring() noexcept {
  ++rings_;
  while (!listeners_.empty()) {
    Listener& first = listeners_.front();
    first.unlink();
    first.complete();
  }
}

Task<> Bell::hear(std::uint64_t seen) {
  while (rings_ == seen) co_await Listener(*this);
}

Task<std::uint64_t> Bell::hear(std::uint64_t seen, Duration most) {
  co_await race(hear(seen), nap(most));
  co_return rings_;
}

}  // namespace stint
