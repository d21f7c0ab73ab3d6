#include "stint/executor.hpp"

#include "stint/cancel.hpp"
#include "stint/detail/owners.hpp"

namespace stint {

bool Executor::post_slow(Runnable& runnable) noexcept {
  if (!is_current() || !has_local_queue_) return post_elsewhere(runnable);  // the flag is read on the own thread only
  push_local(runnable);
  return false;
}

void Executor::arm(Timer& timer, TimePoint when) noexcept {
  STINT_ASSERT(is_current());
  // Rounded up: never early.
  wheel_.arm(timer, when > TimePoint::max() - kTick ? ~TimerWheel::Tick{0} >> 1 : tick_at(when + kTick - Duration(1)));
}

std::optional<TimePoint> Executor::next_timer() noexcept {
  const auto tick = wheel_.next_tick();
  return tick ? std::optional(epoch_ + static_cast<Duration::rep>(*tick) * kTick) : std::nullopt;
}

bool Executor::at_rest() const noexcept {
  bool rest = true;
  roots_.for_each([&rest](const ExecutorRoot& root) { rest = rest && root.at_rest(); });
  return rest;
}

void Executor::drop_queued() noexcept {
  Runnable* next = std::exchange(local_head_, nullptr);
  local_tail_ = &local_head_;
  while (next != nullptr) {
    Runnable& runnable = *next;
    next = runnable.next_queued;  // read first: dropped() may destroy it
    runnable.dropped();
  }
}

void Executor::abandon_all() noexcept {
  while (!cancelled_.empty()) {  // back to their tokens, which are about to be destroyed
    Chain& chain = cancelled_.front();
    chain.unlink();
    chain.token().chains_.push_back(chain);
  }
  while (!roots_.empty()) {
    ExecutorRoot& root = roots_.front();
    root.unlink();
    root.abandon();
  }
  if (owners_ != nullptr) detail::Owners::executor_destroyed(*this);
}

}  // namespace stint
