#include "stint/notification.hpp"

#include "stint/deadline.hpp"

namespace stint {

/// Returns false if the chain is already cancelled.
bool Notification::Waiter::begin() noexcept {
  if (!park()) return false;
  notification_.waiters_.push_back(*this);
  return true;
}

void Notification::Waiter::end() noexcept {
  unlink();
  disarm_timer();
  complete();
}

void Notification::Waiter::cancel() noexcept {
  if (linked()) end();  // otherwise notified, and already queued
}

void Notification::TimedWaiter::await_suspend(std::coroutine_handle<>) noexcept {
  if (begin()) executor().arm(*this, Deadline::after(executor().now(), most_).when());
}

void Notification::TimedWaiter::fire() noexcept {
  detail::Link<Waiter>::unlink();
  complete();
}

void Notification::notify() noexcept {
  ++count_;
  while (!waiters_.empty()) waiters_.front().end();
}

Task<> Notification::wait(std::uint64_t seen) {
  while (count_ == seen) co_await Waiter(*this);
}

Task<std::uint64_t> Notification::wait(std::uint64_t seen, Duration most) {
  if (count_ == seen) co_await TimedWaiter(*this, most);
  co_return count_;
}

}  // namespace stint
