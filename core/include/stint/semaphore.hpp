/// Counts units of one scarce resource: session slots, connections, model tokens.
///
/// Strictly FIFO within a priority; no request barges, `try_acquire` included. A large request at the head delays
/// smaller ones behind it, except for up to `bypass_max` of them, since starvation is worse. Higher priorities go
/// first, but a lower one is passed over at most `passed_over_max` times in a row. Two kinds of waiters go ahead of
/// their line: one that returns from a back-off (`LimitSet`), and one that holds a mutex for which a waiter of higher
/// priority waits. Thread-safe. Waiters resume on their own executor, never under the lock; a waiter lives in its
/// coroutine's frame, so waiting allocates nothing. A cancellation that arrives before the waiter resumes with its
/// permit wins, and the permit goes to the next waiter. Must outlive its permits, its waiters and their executors' last
/// grant: the destructor asserts that there are no waiters and no held units.
#pragma once

#include "stint/detail/branch.hpp"
#include "stint/detail/spin_mutex.hpp"
#include "stint/error.hpp"
#include "stint/task.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint {

class Semaphore;
namespace detail {
class SemaphoreWait;
}

/// Held units of a semaphore; returns them when destroyed, on any thread.
class [[nodiscard]] Permit {
 public:
  Permit() noexcept = default;  ///< holds nothing
  Permit(Permit&& other) noexcept
      : semaphore_(std::exchange(other.semaphore_, nullptr)),
        units_(std::exchange(other.units_, 0)),
        holder_(other.holder_) {}
  /// First returns the units it held.
  Permit& operator=(Permit&& other) noexcept;
  inline ~Permit();

  [[nodiscard]] std::uint32_t units() const noexcept { return units_; }
  [[nodiscard]] const Semaphore* semaphore() const noexcept { return semaphore_; }
  explicit operator bool() const noexcept { return units_ != 0; }

  /// Returns all units now.
  void release() noexcept {
    if (semaphore_ != nullptr) give_back();
  }
  /// Returns some units. `Errc::invalid`, and nothing changes, if it holds fewer.
  Result<> release(std::uint32_t units);
  /// Moves `units` into a new permit (0 makes an empty one). `Errc::invalid` if it holds fewer.
  Result<Permit> split(std::uint32_t units);
  /// Adds the units of another permit of the same semaphore. `Errc::invalid`, and nothing changes, for a different
  /// semaphore.
  Result<> merge(Permit&& other);
  /// Removes the units permanently: the capacity shrinks by them.
  void forget() noexcept;
  /// Gives up ownership without returning the units; the caller must later call `Semaphore::release(units)` or `adopt`.
  std::uint32_t detach() noexcept;

 private:
  friend class Semaphore;
  friend class Acquire;
  Permit(Semaphore& semaphore, std::uint32_t units, std::uint32_t holder) noexcept
      : semaphore_(&semaphore), units_(units), holder_(holder) {}
  inline void give_back() noexcept;

  Semaphore* semaphore_ = nullptr;
  std::uint32_t units_ = 0;
  std::uint32_t holder_ = 0;  // index in the list of holders, if that is tracked
};

/// A request: units, priority and label.
struct AcquireOptions {
  std::uint32_t units = 1;
  int priority = 0;             ///< kPriorityMin … kPriorityMax; higher goes first
  std::string_view label = {};  ///< for listings; must live until the wait is over (a held permit keeps a copy)
};

class Acquire;
template <>
inline constexpr bool detail::kUnlinksItself<Acquire> = false;  // take_back() unlinks it, under the lock

/// The wait for a permit: `co_await semaphore.acquire()` → Result<Permit>.
class [[nodiscard]] Acquire : public Leaf, public detail::Link<Acquire> {
 public:
  Acquire(Semaphore& semaphore, std::uint32_t units, int priority = 0) noexcept
      : semaphore_(semaphore),
        units_(units),
        priority_(static_cast<std::int8_t>(std::clamp(priority, -128, 127))),
        kind_(priority == 0 ? Kind::plain : Kind::ranked) {}
  Acquire(Acquire&& other) noexcept;  // before it is awaited only
  ~Acquire() { withdraw_undelivered(); }

  inline bool await_ready() noexcept;
  bool await_suspend(std::coroutine_handle<>) noexcept { return begin() ? !line_up() : true; }
  inline Result<Permit> await_resume() noexcept;

 protected:
  // Written under the semaphore's lock while `waiting`; the thread that changes it has decided the wait and must
  // complete it.
  enum class State : std::uint8_t { idle, waiting, granted, stopped, timed_out, closed, invalid };
  enum class Kind : std::uint8_t {
    plain,     // default priority, no label
    ranked,    // another priority
    labelled,  // a LabelledAcquire
    foreign,   // belongs to no chain; `decided` is called
  };

  /// Parks. False if `await_ready` found the chain cancelled.
  inline bool begin() noexcept;
  /// Must come first in the destructor of a derived class that other threads can see while it is linked.
  void withdraw_undelivered() noexcept {
    if (owed_ != 0) [[unlikely]]
      withdraw_owed();
  }
  bool line_up() noexcept;
  bool line_up_slow() noexcept;
  bool owner_lines_up() noexcept;
  std::uint32_t enlist() noexcept;
  State enter() noexcept;
  bool withdraw(State why) noexcept;
  void give_up(State why) noexcept;
  [[nodiscard, gnu::cold]] Error failure() const;
  State state() const noexcept { return state_; }
  void set_kind(Kind kind) noexcept { kind_ = kind; }
  /// Called under the semaphore's lock when the wait is decided, for `Kind::foreign`, instead of queueing the waiter.
  virtual void decided(Wakes&) noexcept {}

 private:
  friend class Semaphore;
  friend class LabelledAcquire;
  friend class detail::Owners;
  friend class detail::SemaphoreWait;
  void cancel() noexcept final { give_up(State::stopped); }
  bool ready() const noexcept final;
  [[gnu::cold]] void withdraw_owed() noexcept;
  void take_back() noexcept;
  void owner_waited() noexcept;

  Semaphore& semaphore_;
  const std::uint32_t units_;
  // What the destructor still has to undo. Own thread only, in a byte that no other thread touches.
  static constexpr std::uint8_t kUndelivered = 1;  // the wait has to be withdrawn
  static constexpr std::uint8_t kOwnerWaits = 2;   // its chain, or one above, holds a mutex whose waiters may boost it
  std::uint8_t owed_ = 0;
  State state_ = State::idle;
  std::int8_t priority_;
  Kind kind_;
};

/// The same with a deadline, after which the result is `Errc::timed_out`. Free units are granted even if it has passed.
class [[nodiscard]] TimedAcquire final : public Acquire, private Timer {
 public:
  TimedAcquire(Semaphore& semaphore, std::uint32_t units, TimePoint deadline) noexcept
      : Acquire(semaphore, units), deadline_(deadline) {}
  TimedAcquire(TimedAcquire&& other) noexcept : Acquire(static_cast<Acquire&&>(other)), deadline_(other.deadline_) {}
  bool await_suspend(std::coroutine_handle<>) noexcept;

 private:
  void fire() noexcept override { give_up(State::timed_out); }
  TimePoint deadline_;
};

/// The same with a timeout that counts from the await.
class [[nodiscard]] AcquireFor final : public Acquire, private Timer {
 public:
  AcquireFor(Semaphore& semaphore, std::uint32_t units, Duration limit) noexcept
      : Acquire(semaphore, units), limit_(limit) {}
  AcquireFor(AcquireFor&& other) noexcept : Acquire(static_cast<Acquire&&>(other)), limit_(other.limit_) {}
  bool await_suspend(std::coroutine_handle<>) noexcept;

 private:
  void fire() noexcept override { give_up(State::timed_out); }
  Duration limit_;
};

/// The same with a priority, a label and an optional deadline, for limits that are shown in listings.
class [[nodiscard]] LabelledAcquire final : public Acquire, private Timer {
 public:
  LabelledAcquire(Semaphore& semaphore, const AcquireOptions& options, Deadline deadline) noexcept
      : Acquire(semaphore, options.units, options.priority), label_(options.label), deadline_(deadline) {
    set_kind(Kind::labelled);
  }
  LabelledAcquire(LabelledAcquire&& other) noexcept
      : Acquire(static_cast<Acquire&&>(other)), label_(other.label_), deadline_(other.deadline_), turn_(other.turn_) {
    set_kind(Kind::labelled);
  }
  ~LabelledAcquire() { withdraw_undelivered(); }
  inline bool await_ready() noexcept;
  bool await_suspend(std::coroutine_handle<>) noexcept;

 private:
  friend class Semaphore;
  void fire() noexcept override { give_up(State::timed_out); }
  std::string_view label_;
  Deadline deadline_;
  TimePoint since_{};
  std::uint64_t turn_ = 0;  // arrival number of a waiter that returns from a back-off; 0: a new request
};

/// Optional settings of a semaphore.
struct SemaphoreOptions {
  std::uint32_t bypass_max = 0;        ///< how many waiters may overtake a head that does not fit
  std::uint32_t passed_over_max = 16;  ///< how often in a row higher priorities may overtake a lower one
  std::uint32_t initially_held = 0;    ///< units held from the start; see `adopt`
  bool track_holders = false;          ///< list holders with label and age; every operation then takes the lock
  const Executor* clock = nullptr;     ///< for the holders' ages; null: the steady clock
};

class Semaphore {
 public:
  static constexpr std::uint32_t kCapacityMax = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kUnlimited = kCapacityMax;
  static constexpr int kPriorityMin = -4, kPriorityMax = 3;
  static constexpr int kBypassScanMax = 64;  // how far past the head a grant searches for one that fits

  using Options = SemaphoreOptions;
  struct Holder {
    std::string label;
    std::uint32_t units = 0;
    TimePoint since;
  };
  struct Waiter {
    std::string label;
    std::uint32_t units = 0;
    int priority = 0;
    std::optional<TimePoint> since;  // set for labelled requests only
  };

  /// Asserts that `capacity` is in 0 … kCapacityMax. With 0 the semaphore starts paused.
  Semaphore(std::string name, std::int64_t capacity, const Options& options = Options());
  Semaphore(std::string name, std::floating_point auto capacity, const Options& options = Options()) = delete;
  ~Semaphore();
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  /// Fails with `invalid` if `units` is 0 or exceeds the capacity, with `closed` after close().
  [[nodiscard]] Acquire acquire(std::uint32_t units = 1) noexcept { return {*this, units}; }
  [[nodiscard]] TimedAcquire acquire_until(TimePoint deadline, std::uint32_t units = 1) noexcept {
    return {*this, units, deadline};
  }
  /// `co_await semaphore.acquire_for(5s)`: fails with `timed_out` after `limit`; free units are granted even if `limit`
  /// is not positive.
  [[nodiscard]] AcquireFor acquire_for(Duration limit, std::uint32_t units = 1) noexcept {
    return {*this, units, limit};
  }
  [[nodiscard]] LabelledAcquire acquire(const AcquireOptions& options, Deadline deadline = {}) noexcept {
    return {*this, options, deadline};
  }
  /// Never barges: returns nothing while there are waiters.
  [[nodiscard]] std::optional<Permit> try_acquire(std::uint32_t units = 1) noexcept {
    if (units != 0 && take_fast(units)) return Permit(*this, units, 0);
    return try_slow(units, {});
  }
  [[nodiscard]] std::optional<Permit> try_acquire(const AcquireOptions& options) noexcept {
    return try_slow(options.units, options.label);
  }
  /// Makes a permit of units that were held initially or detached. Asserts that there are that many.
  [[nodiscard]] Permit adopt(std::uint32_t units) noexcept;
  /// Returns units that were held initially or detached. `Errc::invalid`, and nothing changes, if there are fewer:
  /// units held by a permit are returned only through that permit.
  Result<> release(std::uint32_t units);

  /// Sets an absolute capacity; never blocks or preempts. A capacity below the held units creates a debt that returning
  /// permits repay first. 0 pauses the semaphore; with any other value, waiters that ask for more than `capacity` fail
  /// with `invalid`. `Errc::invalid` if `capacity` is out of range.
  Result<> set_capacity(std::int64_t capacity);
  Result<> set_capacity(std::floating_point auto capacity) = delete;
  /// Waiters and new requests fail with `closed`; held permits stay valid and can be returned. Idempotent.
  void close() noexcept;

  /// Free units; negative: debt.
  [[nodiscard]] std::int64_t available() const noexcept { return word_.load(std::memory_order_relaxed) >> 1; }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool closed() const noexcept;
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Highest priority first, by arrival within a priority; at most `limit` entries.
  [[nodiscard]] std::vector<Waiter> waiters(std::size_t limit = 1000) const;
  /// Empty unless `track_holders`.
  [[nodiscard]] std::vector<Holder> holders() const;

 private:
  friend class Acquire;
  friend class LabelledAcquire;
  friend class LimitSet;
  friend class Permit;
  friend class PermitSet;
  friend class detail::SemaphoreWait;
  using State = Acquire::State;
  using Lock = std::unique_lock<detail::SpinMutex>;
  static constexpr std::int64_t kSlow = 1;
  // Two lines per priority: waiters that return from a back-off are ahead of the others, like half a priority more.
  static constexpr int kLines = 2 * (kPriorityMax - kPriorityMin + 1);
  static constexpr std::size_t kPlainLine = 2 * (0 - kPriorityMin);  // default priority, not returning from a back-off
  static constexpr std::uint32_t kOccupied = (1U << kLines) - 1;
  static constexpr std::uint32_t kClosed = 1U << kLines, kBoosted = kClosed << 1, kBypassed = kBoosted << 1;
  /// A waiter that goes ahead of its line, because a waiter of higher priority needs the mutex it holds. It keeps its
  /// place.
  struct Boost : detail::Link<Boost> {
    Acquire* waiter = nullptr;
    std::size_t line = 0;  // the line it goes ahead of
  };

  bool swap(std::int64_t& expected, std::int64_t wanted, std::memory_order order) noexcept {
    return word_.compare_exchange_weak(expected, wanted, order, std::memory_order_relaxed);
  }
  bool take_fast(std::int64_t units) noexcept {
    std::int64_t word = word_.load(std::memory_order_relaxed);
    while ((word & kSlow) == 0 && word >= 2 * units) {
      if (swap(word, word - 2 * units, std::memory_order_acquire)) return true;
    }
    return false;
  }
  bool add_fast(std::int64_t units) noexcept {
    std::int64_t word = word_.load(std::memory_order_relaxed);
    while ((word & kSlow) == 0) {
      if (swap(word, word + 2 * units, std::memory_order_release)) return true;
    }
    return false;
  }
  /// A single CAS attempt; small enough that destroying a `Result<Permit>` is inlined and the temporary needs no space
  /// in the frame.
  void give_back(std::uint32_t units, std::uint32_t holder) noexcept {
    std::int64_t word = word_.load(std::memory_order_relaxed);
    if ((word & kSlow) != 0 || !swap(word, word + 2 * std::int64_t{units}, std::memory_order_release)) {
      give_back_slow(units, holder);
    }
  }

  // Under the lock.
  State line_up(Acquire& waiter) noexcept;
  bool line_up_plain(Acquire& waiter) noexcept;
  State take_or_link(Acquire& waiter) noexcept;
  void add_units(std::int64_t units) noexcept;
  Acquire* next_to_grant(std::int64_t free) noexcept;
  Acquire* bypasser(const Acquire& head, std::int64_t free) noexcept;
  Acquire* head() const noexcept;
  [[gnu::cold]] Acquire* boosted_head(std::size_t line) const noexcept;
  [[gnu::cold]] std::size_t rank_of(const Acquire& waiter) const noexcept;
  [[gnu::cold]] void drop_boost(const Acquire& waiter) noexcept;
  std::size_t head_line() const noexcept;
  static std::size_t line_of(const Acquire& waiter) noexcept;
  [[gnu::cold]] static void sort_by_turn(const detail::List<Acquire>& line, detail::Link<Acquire>& last) noexcept;
  void link(Acquire& waiter) noexcept;
  void unlink(Acquire& waiter) noexcept;
  void grant(Acquire& waiter, std::int64_t& free, Wakes& wakes) noexcept;
  void decide(Acquire& waiter, State state, Wakes& wakes) noexcept;
  void queue(Acquire& waiter, Wakes& wakes) noexcept;
  void settle(Lock& lock, Wakes& wakes) noexcept;
  std::uint32_t occupied() const noexcept { return flags_ & kOccupied; }
  bool is_closed() const noexcept { return (flags_ & kClosed) != 0; }
  bool is_boosted() const noexcept { return (flags_ & kBoosted) != 0; }
  void note_boosts() noexcept { flags_ = boosts_.empty() ? flags_ & ~kBoosted : flags_ | kBoosted; }
  /// There are waiters, all in the plain line.
  bool is_plain() const noexcept { return flags_ == 1U << kPlainLine; }
  bool hand_to_head(std::uint32_t units) noexcept;
  bool settle_plain(std::int64_t free, Wakes& wakes) noexcept;
  void fail_impossible(Lock& lock, Wakes& wakes) noexcept;
  void resize(Lock& lock, Wakes& wakes, std::uint32_t capacity, std::int64_t free_change) noexcept;
  void yield_lock(Lock& lock, Wakes& wakes) noexcept;
  bool impossible(std::uint32_t units) const noexcept;
  std::uint32_t add_holder(const Acquire* waiter, std::string_view label, std::uint32_t units) noexcept;
  void remove_holder(std::uint32_t holder) noexcept;

  /// For `LimitSet`: an arrival number, and a wait that returns to that position.
  std::uint64_t draw_turn() noexcept { return turns_.fetch_add(1, std::memory_order_relaxed) + 1; }
  [[nodiscard]] LabelledAcquire acquire_again(const AcquireOptions& options, Deadline deadline,
                                              std::uint64_t turn) noexcept {
    LabelledAcquire again(*this, options, deadline);
    again.turn_ = turn;
    return again;
  }
  /// Moves a waiter ahead of those of `priority`, or undoes that.
  void set_boost(Boost& boost, std::optional<int> priority, Wakes& wakes) noexcept;
  void give_back_slow(std::uint32_t units, std::uint32_t holder) noexcept;
  void give_back_locked(std::uint32_t units, std::uint32_t holder) noexcept;
  bool leave(Acquire& waiter, State why) noexcept;
  bool take_detached(std::uint32_t units) noexcept;
  std::optional<Permit> try_slow(std::uint32_t units, std::string_view label) noexcept;
  void forget(std::uint32_t units, std::uint32_t holder) noexcept;
  std::uint32_t split_holder(std::uint32_t holder, std::uint32_t units) noexcept;
  void merge_holder(std::uint32_t into, std::uint32_t from) noexcept;
  TimePoint clock_now() const noexcept { return clock_ != nullptr ? clock_->now() : Clock::now(); }

  std::atomic<std::int64_t> word_;  // 2 × free units (may be negative) + kSlow
  std::atomic<std::uint32_t> capacity_;
  std::atomic<std::uint32_t> waiting_ = 0;
  std::atomic<std::uint64_t> detached_;  // held units that no permit owns
  mutable detail::SpinMutex mutex_;
  std::array<detail::List<Acquire>, kLines> lines_;  // by priority
  std::array<std::uint32_t, kLines> passed_over_{};  // grants to higher lines since the last to this one
  std::uint32_t flags_ = 0;                          // one bit per non-empty line, and kClosed, kBoosted, kBypassed
  std::array<std::uint32_t, kLines> bypassed_{};     // how many overtook the line's first waiter while it was the head
  std::uint32_t settling_ = 0;                       // releasers between two batches; the destructor waits for them
  std::atomic<std::uint64_t> turns_ = 0;
  detail::List<Boost> boosts_;  // highest first
  const std::uint32_t bypass_max_;
  const std::uint32_t passed_over_max_;
  const bool tracks_;
  const Executor* const clock_;
  std::vector<Holder> holders_;  // by holder number - 1; units 0: unused entry
  std::vector<std::uint32_t> free_holders_;
  const std::string name_;
};

inline Permit::~Permit() {
  if (semaphore_ != nullptr) semaphore_->give_back(units_, holder_);
}
inline void Permit::give_back() noexcept {
  std::exchange(semaphore_, nullptr)->give_back(std::exchange(units_, 0), holder_);
}
inline Permit& Permit::operator=(Permit&& other) noexcept {
  Permit taken(std::move(other));  // moved first, so that self-assignment is safe
  std::swap(semaphore_, taken.semaphore_);
  std::swap(units_, taken.units_);
  std::swap(holder_, taken.holder_);
  return *this;
}

inline Acquire::Acquire(Acquire&& other) noexcept
    : semaphore_(other.semaphore_), units_(other.units_), priority_(other.priority_), kind_(other.kind_) {
  STINT_ASSERT(other.state_ == State::idle);
}

/// Takes free units without suspending, if there are no waiters and the chain is not cancelled.
inline bool Acquire::await_ready() noexcept {
  if (token().cancelled()) {
    state_ = State::stopped;
    return false;
  }
  if (units_ == 0 || !semaphore_.take_fast(units_)) return false;
  state_ = State::granted;
  return true;
}

inline bool Acquire::begin() noexcept {
  park_shielded();
  if (state_ != State::stopped) return true;
  complete();
  return false;
}

/// A priority out of range is refused even if units are free; otherwise the mistake would only show under load.
inline bool LabelledAcquire::await_ready() noexcept {
  const bool in_range = priority_ >= Semaphore::kPriorityMin && priority_ <= Semaphore::kPriorityMax;
  return (in_range || token().cancelled()) && Acquire::await_ready();
}

inline Result<Permit> Acquire::await_resume() noexcept {
  if ((std::exchange(owed_, std::uint8_t{0}) & kOwnerWaits) != 0) [[unlikely]]
    owner_waited();
  if (state_ != State::granted) [[unlikely]]
    return std::unexpected(failure());
  return Permit(semaphore_, units_, semaphore_.tracks_ ? enlist() : 0);
}

/// `co_await with_permit(semaphore, fn)`: runs `fn()`, a task, under a permit. Waits no longer than the deadline of the
/// caller's scope; after that it fails with `timed_out` and `fn` was not started.
template <class Fn>
auto with_permit(Semaphore& semaphore, Fn fn, std::uint32_t units = 1)
    -> Task<detail::Flat<typename std::invoke_result_t<Fn&>::value_type>> {
  const Deadline deadline = (co_await current_token()).deadline();
  STINT_CO_TRY(const Permit permit, co_await semaphore.acquire_until(deadline.when(), units));
  if constexpr (std::is_void_v<typename std::invoke_result_t<Fn&>::value_type>) {
    co_await fn();
    co_return Result<>();
  } else {
    co_return co_await fn();
  }
}

}  // namespace stint
