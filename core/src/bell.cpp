#include "stint/bell.hpp"

#include "stint/deadline.hpp"

namespace stint {

/// False: stopped already.
bool Bell::Listener::begin() noexcept {
  if (!park()) return false;
  bell_.listeners_.push_back(*this);
  return true;
}

void Bell::Listener::end() noexcept {
  unlink();
  let_go();
  complete();
}

void Bell::Listener::cancel() noexcept {
  if (linked()) end();  // else it has rung, and this is queued
}

void Bell::PatientListener::await_suspend(std::coroutine_handle<>) noexcept {
  if (begin()) executor().arm(*this, Deadline::after(executor().now(), most_).when());
}

void Bell::PatientListener::fire() noexcept {
  detail::Link<Listener>::unlink();
  complete();
}

void Bell::ring() noexcept {
  ++rings_;
  while (!listeners_.empty()) listeners_.front().end();
}

Task<> Bell::hear(std::uint64_t seen) {
  while (rings_ == seen) co_await Listener(*this);
}

Task<std::uint64_t> Bell::hear(std::uint64_t seen, Duration most) {
  if (rings_ == seen) co_await PatientListener(*this, most);
  co_return rings_;
}

}  // namespace stint
