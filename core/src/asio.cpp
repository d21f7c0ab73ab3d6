#include "stint/asio.hpp"

#include <algorithm>
#include <thread>

namespace stint {
namespace {

constexpr int kPausesPerClockRead = 16;  // pauses between two clock reads

/// Drops a post that came too late. The runnable may be a leaf whose frame its executor is destroying right now: its
/// destructor has begun, so the virtual call reaches one of two functions that do nothing, and the destructor waits for
/// the lock under which it is posted.
[[gnu::noinline, clang::no_sanitize("thread")]] void drop_late(Runnable& runnable) noexcept { runnable.dropped(); }

}  // namespace

Reactor::Reactor()
    : own_(std::make_unique<Context>(1)), io_(*own_), alarm_(std::make_unique<asio::steady_timer>(io_)), idle_(false) {
  work_.emplace(io_.get_executor());
  use_local_queue();
  set_epoch(Clock::now());
}

Reactor::Reactor(asio::io_context& io)
    : io_(io), alarm_(std::make_unique<asio::steady_timer>(io_)), alive_(std::make_shared<bool>(true)), idle_(true) {
  set_epoch(Clock::now());
}

Reactor::~Reactor() {
  STINT_ASSERT(is_current());
  STINT_ASSERT((own_ || at_rest()) && "an attached reactor must be at rest when it is destroyed");
  mark_closing();
  take_inbox(&closed_);
  drop_queued();
  if (own_) own_->shutdown();  // handlers point into frames, so they are destroyed first
  abandon_all();
  while (posting_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  if (alive_) *alive_ = false;
}

bool Reactor::post_elsewhere(Runnable& runnable) noexcept {
  if (is_current()) {
    if (closing()) {
      runnable.dropped();
      return false;
    }
    runnable.next_queued = nullptr;
    *local_tail_ = &runnable;
    local_tail_ = &runnable.next_queued;
    if (!must_wake()) return false;
    posting_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  posting_.fetch_add(1, std::memory_order_relaxed);  // before the push: the pushed runnable may end the reactor
  Runnable* newest = inbox_.load(std::memory_order_relaxed);
  do {
    if (newest == &closed_) {
      posting_.fetch_sub(1, std::memory_order_release);
      drop_late(runnable);
      return false;
    }
    runnable.next_queued = newest;
  } while (!inbox_.compare_exchange_weak(newest, &runnable, std::memory_order_seq_cst, std::memory_order_relaxed));
  if (must_wake()) return true;
  posting_.fetch_sub(1, std::memory_order_release);
  return false;
}

/// The poster pushes, then checks whether the reactor is idle; the reactor marks itself idle, then checks for pushes.
/// So one of them sees the other. A wake-up that has not run yet suffices: it runs before the inbox is read again.
bool Reactor::must_wake() noexcept {
  return idle_.load(std::memory_order_seq_cst) && idle_.exchange(false, std::memory_order_seq_cst) &&
         !wake_in_flight_.exchange(true, std::memory_order_seq_cst);
}

void Reactor::wake() noexcept {
  wakes_.fetch_add(1, std::memory_order_relaxed);
  if (own_) {
    asio::post(io_, Wake{this});
  } else {
    asio::post(io_, [this, alive = alive_] {
      if (*alive) woken();
    });
  }
  posting_.fetch_sub(1, std::memory_order_release);
}

/// The loop of an own context continues by itself; an attached reactor has no other opportunity to run ready work.
void Reactor::woken() noexcept {
  wake_in_flight_.store(false, std::memory_order_seq_cst);
  if (own_) return;
  idle_.store(false, std::memory_order_seq_cst);
  const bool more = run_batch();
  if (!more) set_alarm();
  idle_.store(true, std::memory_order_seq_cst);
  if (!more && inbox_.load(std::memory_order_seq_cst) == nullptr) return;
  if (!must_wake()) return;
  posting_.fetch_add(1, std::memory_order_relaxed);
  wake();
}

void Reactor::work_changed(bool unfinished) noexcept {
  if (own_) return;  // its loop ends by `done`
  if (unfinished) {
    work_.emplace(io_.get_executor());
  } else {
    work_.reset();
  }
}

void Reactor::take_inbox(Runnable* left) noexcept {
  Runnable* newest = inbox_.exchange(left, std::memory_order_seq_cst);
  if (newest == nullptr) return;
  Runnable* oldest = nullptr;
  Runnable** const last = &newest->next_queued;
  while (newest != nullptr) {
    Runnable* const older = std::exchange(newest->next_queued, oldest);
    oldest = std::exchange(newest, older);
  }
  *local_tail_ = oldest;
  local_tail_ = last;
}

/// Runs at most `most` of the runnables queued so far; those queued meanwhile come later. Returns the number run.
int Reactor::run_queued(int most) noexcept {
  Runnable* next = std::exchange(local_head_, nullptr);
  Runnable** const last = std::exchange(local_tail_, &local_head_);
  int left = most;
  do {
    Runnable& runnable = *next;
    next = runnable.next_queued;  // read first: run() may destroy it
    runnable.run();
  } while (--left > 0 && next != nullptr);
  if (next == nullptr) return most - left;
  *last = local_head_;
  if (local_head_ == nullptr) local_tail_ = last;
  local_head_ = next;
  return most - left;
}

/// Runs one batch of resumes and due timers; then it is I/O's turn, so that neither starves the other. False if nothing
/// is left to run.
bool Reactor::run_batch() noexcept {
  take_inbox();
  int resumes = 0;
  {
    const Running running(*this);
    while (local_head_ != nullptr && resumes < kResumesPerPoll) resumes += run_queued(kResumesPerPoll - resumes);
  }
  fire_due(now());
  unpolled_resumes_ += resumes;
  return local_head_ != nullptr || inbox_.load(std::memory_order_relaxed) != nullptr;
}

void Reactor::poll_in_turn() {
  if (unpolled_resumes_ < kResumesPerPoll && ++unpolled_batches_ < kBatchesPerPoll) return;
  unpolled_resumes_ = unpolled_batches_ = 0;
  for (int handlers = 0; handlers < kHandlersPerPoll && io_.poll_one() != 0; ++handlers) {
  }
}

void Reactor::set_alarm() {
  const TimePoint next = next_timer().value_or(TimePoint::max());
  if (next == alarm_at_) return;
  alarm_at_ = next;
  alarm_->expires_at(
      next);  // cancels the previous wait: an attached context must not keep running for a disarmed timer
  if (next == TimePoint::max()) return;
  alarm_->async_wait([this, alive = alive_](boost::system::error_code error) {
    if (error || (alive && !*alive)) return;
    alarm_at_ = TimePoint::max();
    if (!own_) woken();
  });
}

/// Sleeps until the next timer, handler or wake-up.
void Reactor::sleep() {
  set_alarm();
  if (spin()) return;
  idle_.store(true, std::memory_order_seq_cst);
  if (inbox_.load(std::memory_order_seq_cst) == nullptr) io_.run_one();
  idle_.store(false, std::memory_order_seq_cst);
  was_posted_to_ = inbox_.load(std::memory_order_relaxed) != nullptr;
}

/// Returns true if a post arrived.
bool Reactor::spin() noexcept {
  if (!was_posted_to_) return false;
  if (spin_rest_ > 0) {
    --spin_rest_;
    return false;
  }
  ++spins_;
  const TimePoint end = now() + kSpinMax;
  do {
    for (int i = 0; i < kPausesPerClockRead; ++i) {
      if (inbox_.load(std::memory_order_relaxed) != nullptr) {
        spin_rest_last_ = 0;
        return true;
      }
      detail::spin_pause();
    }
  } while (now() < end);
  spin_rest_ = spin_rest_last_ = std::min(2 * spin_rest_last_ + 1, kSpinRestMax);
  return false;
}

asio::io_context& context_of(Executor& executor) noexcept {
  auto* const reactor = dynamic_cast<Reactor*>(&executor);
  STINT_ASSERT(reactor != nullptr && "an Asio operation can be awaited only on a Reactor");
  return reactor->io();
}

namespace detail {

asio::execution_context::id AsioWaiters::id;

void AsioWaiters::add(Waiter& waiter) noexcept {
  const std::lock_guard lock(mutex_);
  waiters_.push_back(waiter);
}

void AsioWaiters::remove(Waiter& waiter) noexcept {
  const std::lock_guard lock(mutex_);
  waiter.unlink();
}

void AsioWaiters::shutdown() {
  while (true) {
    std::unique_lock lock(mutex_);
    if (waiters_.empty()) break;
    Waiter& waiter = waiters_.front();
    waiter.unlink();
    lock.unlock();
    waiter.abandon();
  }
  // Services shut down in reverse order of creation, so this one is before the scheduler, which destroys what those
  // threads posted.
  while (holds_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
}

}  // namespace detail

boost::system::error_code to_error_code(const Error& error) noexcept {
  switch (error.code()) {
    case Errc::cancelled: return asio::error::operation_aborted;
    case Errc::timed_out: return asio::error::timed_out;
    case Errc::closed: return asio::error::shut_down;
    case Errc::invalid: return asio::error::invalid_argument;
    case Errc::full: return asio::error::no_buffer_space;
    case Errc::exhausted: return asio::error::no_memory;
    case Errc::unavailable: return asio::error::connection_refused;
    case Errc::conflict: return asio::error::already_started;
    case Errc::denied: return asio::error::access_denied;
    case Errc::failed: return asio::error::fault;
  }
  return asio::error::fault;
}

}  // namespace stint
