#include "stint/queue.hpp"

#include <thread>

namespace stint::detail {

QueueBase::QueueBase(std::string name, std::size_t capacity) : capacity_(capacity), name_(std::move(name)) {
  STINT_ASSERT(capacity > 0 && "a queue needs room for one item at least");
}

QueueBase::~QueueBase() {
  Lock lock(mutex_);
  while (closing_ != 0) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  STINT_ASSERT(producers_.count == 0 && "this queue still has waiting producers");
  STINT_ASSERT(consumers_.count == 0 && "this queue still has waiting consumers");
}

void QueueBase::decide_head(Line& line, State state, Wakes& wakes) noexcept {
  QueueWait& wait = line.waits.front();
  line.remove(wait);
  wait.state_ = state;
  wakes.post(wait.executor(), wait);  // its thread may resume and destroy it immediately
}

/// No waiter behind it can proceed because this one left: each waits for exactly one item.
bool QueueBase::leave(QueueWait& wait, State why) noexcept {
  const Lock lock(mutex_);
  if (wait.state_ != State::waiting) return false;
  (wait.side_ == QueueWait::Side::producer ? producers_ : consumers_).remove(wait);
  wait.state_ = why;
  return true;
}

void QueueBase::close() noexcept {
  Wakes wakes;
  Lock lock(mutex_);
  closed_ = true;
  close_line(producers_, lock, wakes);
  close_line(consumers_, lock, wakes);
}

void QueueBase::close_line(Line& line, Lock& lock, Wakes& wakes) noexcept {
  while (line.count != 0) {
    for (int decided = 0; line.count != 0 && decided < Wakes::kMost; ++decided) {
      decide_head(line, State::closed, wakes);
    }
    ++closing_;  // wake-ups are system calls and must not be made under the lock
    lock.unlock();
    wakes.flush();
    lock.lock();
    --closing_;
  }
}

bool QueueBase::closed() const noexcept {
  const Lock lock(mutex_);
  return closed_;
}
std::size_t QueueBase::size() const noexcept {
  const Lock lock(mutex_);
  return size_;
}
std::size_t QueueBase::waiting_producers() const noexcept {
  const Lock lock(mutex_);
  return producers_.count;
}
std::size_t QueueBase::waiting_consumers() const noexcept {
  const Lock lock(mutex_);
  return consumers_.count;
}
std::uint64_t QueueBase::dropped() const noexcept {
  const Lock lock(mutex_);
  return dropped_;
}

Error QueueBase::refusal(bool closed) const {
  if (closed) return {Errc::closed, "queue '" + name_ + "': closed"};
  return {Errc::full, Retry::safe, "queue '" + name_ + "': all " + std::to_string(capacity_) + " places are taken"};
}

bool QueueWait::ready() const noexcept {
  const QueueBase::Lock lock(queue_.mutex_);
  return state_ != State::waiting;
}

void QueueWait::give_up(State why) noexcept {
  if (!queue_.leave(*this, why)) return;
  undelivered_ = false;
  complete();
}

Error QueueWait::failure() const {
  switch (state_) {
    case State::closed: return queue_.refusal(true);
    case State::timed_out: return {Errc::timed_out, "queue '" + queue_.name() + "': neither room nor item in time"};
    case State::idle:
    case State::waiting:
    case State::done:
    case State::stopped: break;
  }
  STINT_ASSERT(state_ == State::stopped);
  return {Errc::cancelled, "queue '" + queue_.name() + "': the wait was cancelled"};
}

}  // namespace stint::detail
