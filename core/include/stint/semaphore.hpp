/// Counts units of one scarce thing: session slots, connections, model tokens.
///
/// Strictly FIFO within a priority, and nobody barges, not even `try_acquire`: a large request at the head delays small
/// ones behind it, up to `bypass_max` of them; starvation is worse. Higher priorities go first, but a lower one is
/// passed over at most `passed_over_max` times in a row. Two go before their line: who comes back from a back-off
/// (`LimitSet`), and who holds a mutex that somebody of higher priority waits for. Thread-safe. Waiters resume on their
/// own executor, never under the lock; a waiter lives in its coroutine's frame, so waiting allocates nothing. A cancel
/// that comes before the waiter sees its permit wins, and the permit goes to the next in line. Must outlive its
/// permits, its waiters and their executors' last grant: the destructor asserts that nobody waits and nothing is held.
#pragma once

#include "stint/detail/branch.hpp"
#include "stint/detail/brief_mutex.hpp"
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

/// A held share of a semaphore; gives it back when destroyed, on any thread.
class [[nodiscard]] Permit {
 public:
  Permit() noexcept = default;  ///< holds nothing
  Permit(Permit&& other) noexcept
      : semaphore_(std::exchange(other.semaphore_, nullptr)),
        units_(std::exchange(other.units_, 0)),
        holder_(other.holder_) {}
  /// Gives back what it held before.
  Permit& operator=(Permit&& other) noexcept;
  inline ~Permit();

  [[nodiscard]] std::uint32_t units() const noexcept { return units_; }
  [[nodiscard]] const Semaphore* semaphore() const noexcept { return semaphore_; }
  explicit operator bool() const noexcept { return units_ != 0; }

  /// Gives everything back now.
  void release() noexcept {
    if (semaphore_ != nullptr) give_back();
  }
  /// Gives `units` of it back; `Errc::invalid`, and nothing changes, if it holds fewer.
  Result<> release(std::uint32_t units);
  /// Parts with `units` of it (0 gives an empty permit); `Errc::invalid` if it holds fewer.
  Result<Permit> split(std::uint32_t units);
  /// Takes over another of the same semaphore; `Errc::invalid`, and nothing changes, otherwise.
  Result<> merge(Permit&& other);
  /// Removes its units for good: the capacity shrinks by them.
  void forget() noexcept;
  /// Lets go of the units without giving them back; the holder of the number owes `Semaphore::release(units)`.
  std::uint32_t detach() noexcept;

 private:
  friend class Semaphore;
  friend class Acquire;
  Permit(Semaphore& semaphore, std::uint32_t units, std::uint32_t holder) noexcept
      : semaphore_(&semaphore), units_(units), holder_(holder) {}
  inline void give_back() noexcept;

  Semaphore* semaphore_ = nullptr;
  std::uint32_t units_ = 0;
  std::uint32_t holder_ = 0;  // its place in the list of holders, if that is kept
};

/// What is asked for, beyond the number of units.
struct AcquireOptions {
  std::uint32_t units = 1;
  int priority = 0;  ///< kPriorityMin … kPriorityMax; higher goes first
  std::string_view label =
      {};  ///< who asks, for listings; must live until the wait is over (a held permit keeps a copy)
};

class Acquire;
template <>
inline constexpr bool detail::kUnlinksItself<Acquire> = false;  // take_back() does, under the lock

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
  // Written under the semaphore's lock while `waiting`; whoever moves it on has decided the wait, and completes it.
  enum class State : std::uint8_t { idle, waiting, granted, stopped, timed_out, closed, invalid };
  enum class Kind : std::uint8_t {
    plain,     // of no special priority
    ranked,    // of another
    labelled,  // a LabelledAcquire
    foreign,   // belongs to no chain: `decided` is told
  };

  /// Parks; false if `await_ready` saw that the chain is cancelled.
  inline bool begin() noexcept;
  /// First thing in the destructor of a class at which others look while it is in a line.
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
  /// The wait was decided; under the semaphore's lock. Called for `Kind::foreign` instead of queueing it.
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
  // What must happen before it goes. Own thread only, and a byte that no other thread touches.
  static constexpr std::uint8_t kUndelivered = 1;  // the wait must be taken back
  static constexpr std::uint8_t kOwnerWaits = 2;   // its chain, or one above, holds a mutex: its waiters may move it
  std::uint8_t owed_ = 0;
  State state_ = State::idle;
  std::int8_t priority_;
  Kind kind_;
};

/// The same with a moment after which the answer is `Errc::timed_out`. What is free is had even if that has passed.
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

/// The same with a time limit that counts from the await.
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

/// The same with a priority, a label and, if wanted, a moment: for limits that people look at.
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
  std::uint64_t turn_ = 0;  // of one that comes back from a back-off; 0: a newcomer
};

/// What a semaphore may be given besides its capacity.
struct SemaphoreOptions {
  std::uint32_t bypass_max = 0;        ///< how many may overtake a head that does not fit, before it goes first again
  std::uint32_t passed_over_max = 16;  ///< how often in a row higher priorities may go before a lower one
  std::uint32_t initially_held = 0;    ///< units that are out from the start; see `adopt`
  bool track_holders = false;          ///< keep a list of who holds what since when; every operation takes the lock
  const Executor* clock = nullptr;     ///< for the holders' ages; null: the steady clock
};

class Semaphore {
 public:
  static constexpr std::uint32_t kCapacityMax = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kUnlimited = kCapacityMax;
  static constexpr int kPriorityMin = -4, kPriorityMax = 3;
  static constexpr int kBypassScanMax = 64;  // how far past the head a grant looks for one that fits

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
    std::optional<TimePoint> since;  // known for labelled requests only
  };

  /// Asserts that `capacity` is in 0 … kCapacityMax. 0 is a semaphore that is paused.
  Semaphore(std::string name, std::int64_t capacity, const Options& options = Options());
  Semaphore(std::string name, std::floating_point auto capacity, const Options& options = Options()) = delete;
  ~Semaphore();
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  /// Fails with `invalid` if `units` is 0 or can never be had, with `closed` after close().
  [[nodiscard]] Acquire acquire(std::uint32_t units = 1) noexcept { return {*this, units}; }
  [[nodiscard]] TimedAcquire acquire_until(TimePoint deadline, std::uint32_t units = 1) noexcept {
    return {*this, units, deadline};
  }
  /// `co_await semaphore.acquire_for(5s)`: `timed_out` after so long; what is free is had even if `limit` is not
  /// positive.
  [[nodiscard]] AcquireFor acquire_for(Duration limit, std::uint32_t units = 1) noexcept {
    return {*this, units, limit};
  }
  [[nodiscard]] LabelledAcquire acquire(const AcquireOptions& options, Deadline deadline = {}) noexcept {
    return {*this, options, deadline};
  }
  /// Never barges: nothing while anybody waits.
  [[nodiscard]] std::optional<Permit> try_acquire(std::uint32_t units = 1) noexcept {
    if (units != 0 && take_fast(units)) return Permit(*this, units, 0);
    return try_slow(units, {});
  }
  [[nodiscard]] std::optional<Permit> try_acquire(const AcquireOptions& options) noexcept {
    return try_slow(options.units, options.label);
  }
  /// Takes over `units` that were held initially or detached. Asserts that so many are.
  [[nodiscard]] Permit adopt(std::uint32_t units) noexcept;
  /// Gives back units that were held initially or detached. `Errc::invalid`, and nothing changes, if fewer are: what a
  /// permit holds comes back with the permit only.
  Result<> release(std::uint32_t units);

  /// Absolute; never blocks or preempts. Below what is held it makes a debt that returning permits repay first.
  /// 0 pauses; otherwise waiters that ask for more than `capacity` fail with `invalid`.
  /// `Errc::invalid` if `capacity` is out of range.
  Result<> set_capacity(std::int64_t capacity);
  Result<> set_capacity(std::floating_point auto capacity) = delete;
  /// Waiters and newcomers get `closed`; permits that are out stay good and can be given back. May be repeated.
  void close() noexcept;

  /// Free units; negative: debt.
  [[nodiscard]] std::int64_t available() const noexcept { return word_.load(std::memory_order_relaxed) >> 1; }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool closed() const noexcept;
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Highest priority first, in order of arrival within one; at most `limit`.
  [[nodiscard]] std::vector<Waiter> waiters(std::size_t limit = 1000) const;
  /// Empty unless `track_holders`.
  [[nodiscard]] std::vector<Holder> holders() const;

 protected:
  bool regrants_on_leave_ = true;  // must-fail tests turn it off

 private:
  friend class Acquire;
  friend class LabelledAcquire;
  friend class LimitSet;
  friend class Permit;
  friend class PermitSet;
  friend class detail::SemaphoreWait;
  using State = Acquire::State;
  using Lock = std::unique_lock<detail::BriefMutex>;
  static constexpr std::int64_t kSlow = 1;
  // Two lines per priority: those who come back from a back-off stand before the others, as half a priority more.
  static constexpr int kLines = 2 * (kPriorityMax - kPriorityMin + 1);
  static constexpr std::size_t kPlainLine = 2 * (0 - kPriorityMin);  // of those who ask for nothing special
  static constexpr std::uint32_t kOccupied = (1U << kLines) - 1;
  static constexpr std::uint32_t kClosed = 1U << kLines, kBoosted = kClosed << 1, kBypassed = kBoosted << 1;
  /// A waiter that goes before its line, because somebody important waits for what it holds. It keeps its place.
  struct Boost : detail::Link<Boost> {
    Acquire* waiter = nullptr;
    std::size_t line = 0;  // the one before which it goes
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
  /// One try; small, so that destroying a `Result<Permit>` is inlined and the temporary needs no place in the frame.
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
  std::uint32_t occupied() const noexcept { return shape_ & kOccupied; }
  bool is_closed() const noexcept { return (shape_ & kClosed) != 0; }
  bool is_boosted() const noexcept { return (shape_ & kBoosted) != 0; }
  void note_boosts() noexcept { shape_ = boosts_.empty() ? shape_ & ~kBoosted : shape_ | kBoosted; }
  /// Somebody waits, and nobody for anything special.
  bool is_plain() const noexcept { return shape_ == 1U << kPlainLine; }
  bool hand_to_head(std::uint32_t units) noexcept;
  bool settle_plain(std::int64_t free, Wakes& wakes) noexcept;
  void fail_impossible(Lock& lock, Wakes& wakes) noexcept;
  void resize(Lock& lock, Wakes& wakes, std::uint32_t capacity, std::int64_t free_change) noexcept;
  void breathe(Lock& lock, Wakes& wakes) noexcept;
  bool impossible(std::uint32_t units) const noexcept;
  std::uint32_t add_holder(const Acquire* waiter, std::string_view label, std::uint32_t units) noexcept;
  void remove_holder(std::uint32_t holder) noexcept;

  /// For `LimitSet`: a place in the order of arrival, and a wait that goes back to it.
  std::uint64_t draw_turn() noexcept { return turns_.fetch_add(1, std::memory_order_relaxed) + 1; }
  [[nodiscard]] LabelledAcquire acquire_again(const AcquireOptions& options, Deadline deadline,
                                              std::uint64_t turn) noexcept {
    LabelledAcquire again(*this, options, deadline);
    again.turn_ = turn;
    return again;
  }
  /// Lets a waiter go before those of `priority`, or takes that away again.
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
  std::atomic<std::uint64_t> detached_;  // units that are out and that no permit holds
  mutable detail::BriefMutex mutex_;
  std::array<detail::List<Acquire>, kLines> lines_;  // by priority
  std::array<std::uint32_t, kLines> passed_over_{};  // grants to higher lines since the last to this one
  std::uint32_t shape_ = 0;                          // one bit per line with somebody in it, and what else is special
  std::array<std::uint32_t, kLines> bypassed_{};     // how many have overtaken its first, as the head of all
  std::uint32_t settling_ = 0;                       // releasers between two batches: the destructor waits for them
  std::atomic<std::uint64_t> turns_ = 0;
  detail::List<Boost> boosts_;  // highest first
  const std::uint32_t bypass_max_;
  const std::uint32_t passed_over_max_;
  const bool tracks_;
  const Executor* const clock_;
  std::vector<Holder> holders_;  // by holder number less one; units 0: free place
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
  Permit taken(std::move(other));  // first, so that who is assigned to itself keeps what it holds
  std::swap(semaphore_, taken.semaphore_);
  std::swap(units_, taken.units_);
  std::swap(holder_, taken.holder_);
  return *this;
}

inline Acquire::Acquire(Acquire&& other) noexcept
    : semaphore_(other.semaphore_), units_(other.units_), priority_(other.priority_), kind_(other.kind_) {
  STINT_ASSERT(other.state_ == State::idle);
}

/// What is free is had without suspending, if nobody waits and nobody has cancelled.
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

/// A priority out of range is refused also when units are free, or the mistake would show under load only.
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
/// scope that the caller runs in; then the answer is `timed_out`, and `fn` was not started.
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
