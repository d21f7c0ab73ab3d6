/// A lock that knows its owner, the chain that locked it; a semaphore of capacity 1 knows neither its holder nor the
/// priorities of its waiters.
///
/// *Ownership.* The owner is a *chain*: a spawned coroutine with everything it awaits, or one branch of a combinator.
/// Only the owner may unlock, or a branch beneath it, or the chain that a finished branch returned its guard to; for
/// any other chain `co_await guard.unlock()` fails with `denied`. Locking a mutex that the chain, or one above it,
/// already holds fails at once with `invalid`. A cycle of waits without a deadline is refused with `conflict`. A
/// destroyed guard unlocks, so an owner that is stopped, throws or loses its executor releases the mutex. That must
/// happen on the owner's thread (asserted), unless the owner has ended or its executor was destroyed.
///
/// *Order and priority inheritance.* Waiters go by effective priority, FIFO within a priority; the oldest is passed
/// over at most `kPassedOverMax` times in a row. A holder's effective priority is that of its highest waiter. If the
/// holder itself waits for another mutex or a semaphore, it moves up in that line too, transitively, and moves back
/// when the reason is gone. This includes waits of branches beneath the holder.
///
/// Thread-safe; waiters live in their frames and resume on their own executors. All mutexes share one lock
/// (`stint/detail/owners.hpp`), so lock and unlock cost more than those of a std::mutex even without contention. The
/// destructor asserts that the mutex is free and has no waiters.
#pragma once

#include "stint/detail/owners.hpp"
#include "stint/error.hpp"

#include <optional>
#include <string>
#include <vector>

namespace stint {

class MutexGuard;

struct LockOptions {
  int priority = 0;             ///< Semaphore::kPriorityMin … kPriorityMax; higher goes first
  std::string_view label = {};  ///< shown in listings; must live until the wait is over (the holder keeps a copy)
  Deadline deadline = {};       ///< then `timed_out`; a free mutex is granted even if it has passed
};

struct MutexArrival {};

/// The wait for a mutex: `co_await mutex.lock()` → Result<MutexGuard>.
class [[nodiscard]] MutexLock final : public Leaf,
                                      public detail::Link<MutexLock>,     // by effective priority
                                      public detail::Link<MutexArrival>,  // by arrival
                                      private detail::OwnerWait,
                                      private Timer {
 public:
  MutexLock(Mutex& mutex, const LockOptions& options) noexcept
      : OwnerWait(options.priority), mutex_(mutex), options_(options) {}
  MutexLock(MutexLock&& other) noexcept  // only before it is awaited
      : OwnerWait(other.options_.priority), mutex_(other.mutex_), options_(other.options_) {
    STINT_ASSERT(other.state_ == State::idle);
  }
  ~MutexLock();
  bool await_suspend(std::coroutine_handle<>) noexcept;
  Result<MutexGuard> await_resume();

 private:
  friend class Mutex;
  // Written under the lock while `waiting`; the thread that changes it has decided the wait and must complete it.
  enum class State : std::uint8_t { idle, waiting, granted, stopped, timed_out, closed, invalid, recursive, cycle };

  bool ready() const noexcept override;
  void cancel() noexcept override { give_up(State::stopped); }
  void fire() noexcept override { give_up(State::timed_out); }
  void give_up(State why) noexcept;
  void moved(Wakes& wakes) noexcept override;
  const Mutex* mutex() const noexcept override { return &mutex_; }
  bool lasts() const noexcept override { return options_.deadline.is_never(); }

  Mutex& mutex_;
  LockOptions options_;
  std::uint64_t ticket_ = 0;  // arrival
  State state_ = State::idle;
  bool undelivered_ = false;  // own thread only: if destroyed while true, the wait has to be withdrawn
};

/// Does not suspend; awaited only to learn the caller's chain.
class [[nodiscard]] MutexTryLock : public NeverSuspends {
 public:
  MutexTryLock(Mutex& mutex, const LockOptions& options) noexcept : mutex_(mutex), options_(options) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    chain_ = awaiting.promise().chain;
    return false;
  }
  Result<MutexGuard> await_resume();

 private:
  Mutex& mutex_;
  LockOptions options_;
  Chain* chain_ = nullptr;
};
class [[nodiscard]] MutexUnlock : public NeverSuspends {
 public:
  explicit MutexUnlock(MutexGuard& guard) noexcept : guard_(guard) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) noexcept {
    chain_ = awaiting.promise().chain;
    return false;
  }
  Result<> await_resume();

 private:
  MutexGuard& guard_;
  Chain* chain_ = nullptr;
};

/// A held mutex; unlocks when destroyed. Move-only.
class [[nodiscard]] MutexGuard {
 public:
  MutexGuard() noexcept = default;  ///< holds nothing
  MutexGuard(MutexGuard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
  /// First unlocks the mutex it held.
  MutexGuard& operator=(MutexGuard&& other) noexcept {
    MutexGuard taken(std::move(other));  // moved first, so that self-assignment is safe
    std::swap(mutex_, taken.mutex_);
    return *this;
  }
  ~MutexGuard();

  explicit operator bool() const noexcept { return mutex_ != nullptr; }
  [[nodiscard]] const Mutex* mutex() const noexcept { return mutex_; }
  /// `co_await guard.unlock()` → Result<>; does not suspend. `denied`, and nothing changes, if the calling chain does
  /// not own the mutex; `invalid` if the guard is empty.
  [[nodiscard]] MutexUnlock unlock() noexcept { return MutexUnlock(*this); }

 private:
  friend class Mutex;
  friend class MutexLock;
  friend class MutexUnlock;
  explicit MutexGuard(Mutex& mutex) noexcept : mutex_(&mutex) {}
  Mutex* mutex_ = nullptr;
};

class Mutex : public detail::Link<Mutex> {
 public:
  static constexpr std::uint32_t kPassedOverMax = 16;

  struct Holder {
    std::string label;
    int priority = 0;   ///< as requested
    int effective = 0;  ///< the maximum of that and its waiters' priorities
    TimePoint since;
    bool abandoned = false;  ///< its chain or executor was destroyed, its guard was not
  };
  struct Waiter {
    std::string label;
    int priority = 0, effective = 0;
  };

  explicit Mutex(std::string name) : name_(std::move(name)) {}
  ~Mutex();
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  [[nodiscard]] MutexLock lock(int priority = 0) noexcept { return {*this, options_of(priority, Deadline())}; }
  [[nodiscard]] MutexLock lock_until(TimePoint deadline, int priority = 0) noexcept {
    return {*this, options_of(priority, Deadline(deadline))};
  }
  [[nodiscard]] MutexLock lock(const LockOptions& options) noexcept { return {*this, options}; }
  /// `co_await mutex.try_lock()` → Result<MutexGuard>; does not suspend. `conflict` if it is held, or granted to a
  /// waiter that has not resumed yet; `invalid` if the calling chain holds it.
  [[nodiscard]] MutexTryLock try_lock(const LockOptions& options = LockOptions()) noexcept { return {*this, options}; }
  /// Waiters and new requests fail with `closed`; the holder keeps the mutex. Idempotent.
  void close() noexcept;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] bool closed() const noexcept;
  [[nodiscard]] std::size_t waiting() const noexcept;
  /// Empty if the mutex is free, or granted to a waiter that has not resumed yet.
  [[nodiscard]] std::optional<Holder> holder() const;
  /// In the order in which they would get the mutex now.
  [[nodiscard]] std::vector<Waiter> waiters() const;

 private:
  friend struct detail::Owner;
  friend class detail::Owners;
  friend class MutexGuard;
  friend class MutexLock;
  friend class MutexTryLock;
  friend class MutexUnlock;
  using State = MutexLock::State;

  static LockOptions options_of(int priority, Deadline deadline) noexcept;
  [[nodiscard]] Error failure(State state, const LockOptions& options) const;
  State enter(MutexLock& wait, Chain& chain);
  Result<MutexGuard> try_lock(Chain& chain, const LockOptions& options);
  Result<> unlock(const Chain& chain);
  void guard_destroyed() noexcept;

  // Under the lock.
  bool is_held() const noexcept { return owner_ != nullptr || granted_ != nullptr || abandoned_; }
  bool is_not_owner(const Chain& chain) const noexcept;
  bool would_close_cycle(const detail::Owner& self) const;
  int highest_waiter() const noexcept;
  State refusal(const LockOptions& options, const std::vector<detail::Owner*>& above) const noexcept;
  void sort_in(MutexLock& wait) noexcept;
  void take_out(MutexLock& wait, State why, Wakes& wakes) noexcept;
  void pass_on(Wakes& wakes) noexcept;
  void take(Chain& chain, const LockOptions& options);
  void pass_to(detail::Owner* successor) noexcept;
  void release(Wakes& wakes) noexcept;

  const std::string name_;
  // At most one of these three is set.
  detail::Owner* owner_ = nullptr;
  MutexLock* granted_ = nullptr;  // granted to this waiter, which has not resumed yet
  bool abandoned_ = false;        // held by a guard that has no owner
  bool closed_ = false;
  std::uint32_t passed_over_ = 0;  // how often in a row the oldest waiter was passed over
  std::uint64_t tickets_ = 0;
  detail::List<MutexLock> line_;
  detail::List<MutexLock, MutexArrival> arrivals_;
  std::size_t waiting_ = 0;
  std::string holder_label_;
  int holder_priority_ = 0;
  TimePoint since_{};
};

}  // namespace stint
