// Invariants, all under the lock:
// 1. kSlow is set exactly while there are waiters, the semaphore is closed, or holders are tracked. While it is set,
// word_ changes only under the lock; while it is clear, only by compare-and-swap. So no request can overtake the
// waiters.
// 2. The head does not fit into the free units: every change of the line, the free units or the capacity ends with
// settle(). Between two batches of a settle() the head may fit, but no other request can take its units.
// 3. A waiter is linked exactly while its state is `waiting`.
// 4. A waiter is queued at its executor under the lock that decided it, and the executor is woken after the lock. So a
// waiter that is seen decided is already queued, and an executor that is being destroyed, whose frames take the lock,
// can't race with a grant.
// 5. free = capacity − held; a debt is a negative free. Held units are those of permits, of grants not yet delivered,
// and detached_.
#include "stint/semaphore.hpp"

#include "stint/detail/owners.hpp"

#include <algorithm>
#include <bit>
#include <thread>

namespace stint {
namespace {

constexpr int kGrantsPerBatch = Wakes::kMost;  // then the lock is released briefly

}  // namespace

Semaphore::Semaphore(std::string name, std::int64_t capacity, const Options& options)
    : word_(2 * (capacity - std::int64_t{options.initially_held}) + (options.track_holders ? kSlow : 0)),
      capacity_(static_cast<std::uint32_t>(capacity)),
      detached_(options.initially_held),
      flags_(options.bypass_max != 0 ? kBypassed : 0),
      bypass_max_(options.bypass_max),
      passed_over_max_(options.passed_over_max),
      tracks_(options.track_holders),
      clock_(options.clock),
      name_(std::move(name)) {
  STINT_ASSERT(capacity >= 0 && capacity <= std::int64_t{kCapacityMax});
}

Semaphore::~Semaphore() {
  Lock lock(mutex_);
  while (settling_ != 0) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  STINT_ASSERT(occupied() == 0 && "this semaphore still has waiters");
  STINT_ASSERT(available() == capacity() && "a permit of this semaphore is still held");
}

// ---- The line ------------------------------------------------------------------------------------------------------

bool Semaphore::impossible(std::uint32_t units) const noexcept {
  const std::uint32_t most = capacity();
  return units == 0 || (most != 0 && units > most);
}

std::size_t Semaphore::line_of(const Acquire& waiter) noexcept {
  const bool returns =
      waiter.kind_ == Acquire::Kind::labelled && static_cast<const LabelledAcquire&>(waiter).turn_ != 0;
  return static_cast<std::size_t>(2 * (waiter.priority_ - kPriorityMin) + (returns ? 1 : 0));
}

/// Moves the last waiter of a line of returning waiters to the place of its turn.
void Semaphore::sort_by_turn(const detail::List<Acquire>& line, detail::Link<Acquire>& last) noexcept {
  const auto turn = [](detail::Link<Acquire>& link) {
    return static_cast<LabelledAcquire&>(static_cast<Acquire&>(link)).turn_;
  };
  for (auto* ahead = last.prev(); ahead != line.end() && turn(*ahead) > turn(last); ahead = last.prev()) {
    last.unlink();
    ahead->insert_before(last);
  }
}

void Semaphore::link(Acquire& waiter) noexcept {
  const std::size_t line = line_of(waiter);
  lines_[line].push_back(waiter);
  if (line % 2 != 0) sort_by_turn(lines_[line], waiter);
  flags_ |= 1U << line;
  waiting_.store(waiting_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  waiter.state_ = State::waiting;
}

void Semaphore::unlink(Acquire& waiter) noexcept {
  const std::size_t line = line_of(waiter);
  if (&lines_[line].front() == &waiter) bypassed_[line] = 0;
  static_cast<detail::Link<Acquire>&>(waiter).unlink();
  if (is_boosted()) [[unlikely]]
    drop_boost(waiter);
  if (lines_[line].empty()) {
    flags_ &= ~(1U << line);
    passed_over_[line] = 0;
  }
  waiting_.store(waiting_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
}

/// The highest occupied priority, unless a line was passed over too often; among several such lines, the one passed
/// over most often, then the higher one. So a new waiter changes the head only by becoming it.
std::size_t Semaphore::head_line() const noexcept {
  int chosen = static_cast<int>(std::bit_width(occupied())) - 1;
  std::uint32_t longest = passed_over_max_;
  for (std::uint32_t lines = occupied(); lines != 0; lines &= lines - 1) {
    const int line = std::countr_zero(lines);
    if (passed_over_[static_cast<std::size_t>(line)] < longest) continue;
    longest = passed_over_[static_cast<std::size_t>(line)];
    chosen = line;
  }
  return static_cast<std::size_t>(chosen);
}

Acquire* Semaphore::head() const noexcept {
  if (occupied() == 0) return nullptr;
  const std::size_t line = head_line();
  return is_boosted() ? boosted_head(line) : &lines_[line].front();
}

/// A waiter behind the head that fits, while the head may still be bypassed.
Acquire* Semaphore::bypasser(const Acquire& head, std::int64_t free) noexcept {
  if (bypassed_[line_of(head)] >= bypass_max_ || free <= 0) return nullptr;
  int looked = 0;
  for (int line = kLines - 1; line >= 0; --line) {
    const auto& waiters = lines_[static_cast<std::size_t>(line)];
    for (auto* link = waiters.first(); link != waiters.end(); link = link->next()) {
      auto& waiter = static_cast<Acquire&>(*link);
      if (waiter.units_ <= free) return &waiter;
      if (++looked == kBypassScanMax) return nullptr;
    }
  }
  return nullptr;
}

Acquire* Semaphore::next_to_grant(std::int64_t free) noexcept {
  Acquire* const first = is_closed() ? nullptr : head();  // close() may have released the lock between two batches
  if (first == nullptr || first->units_ <= free) return first;
  return bypass_max_ == 0 ? nullptr : bypasser(*first, free);
}

/// The waiter's thread may resume and destroy it immediately.
inline void Semaphore::queue(Acquire& waiter, Wakes& wakes) noexcept {
  if (waiter.kind_ == Acquire::Kind::foreign) {
    waiter.decided(wakes);
  } else {
    wakes.post(waiter.executor(), waiter);
  }
}

void Semaphore::decide(Acquire& waiter, State state, Wakes& wakes) noexcept {
  unlink(waiter);
  waiter.state_ = state;
  queue(waiter, wakes);
}

void Semaphore::grant(Acquire& waiter, std::int64_t& free, Wakes& wakes) noexcept {
  const std::size_t line = line_of(waiter);
  if (bypass_max_ != 0) {
    const Acquire* const first = head();
    if (first != &waiter) ++bypassed_[line_of(*first)];
  }
  const std::size_t rank = is_boosted() ? rank_of(waiter) : line;
  if (const std::uint32_t lower = occupied() & ((1U << rank) - 1); lower != 0) {
    for (std::size_t i = 0; i < rank; ++i) passed_over_[i] += (lower >> i) & 1U;
  }
  // A bypasser does not end the wait of the first waiter in its own line.
  if (&lines_[line].front() == &waiter) passed_over_[line] = 0;
  free -= waiter.units_;
  decide(waiter, State::granted, wakes);
}

/// Releases the lock briefly, so that many wake-ups (system calls) do not block other threads.
void Semaphore::yield_lock(Lock& lock, Wakes& wakes) noexcept {
  ++settling_;
  lock.unlock();
  wakes.flush();
  lock.lock();
  --settling_;
}

/// The common case of a single plain line, served from its front. Returns false if more waiters fit than one batch
/// holds.
[[gnu::always_inline]] inline bool Semaphore::settle_plain(std::int64_t free, Wakes& wakes) noexcept {
  auto& line = lines_[kPlainLine];
  std::uint32_t granted = 0;
  bool more = false;
  do {
    Acquire& waiter = line.front();
    more = waiter.units_ <= free;
    if (!more || granted == kGrantsPerBatch || wakes.full()) break;
    ++granted;
    free -= waiter.units_;
    static_cast<detail::Link<Acquire>&>(waiter).unlink();
    waiter.state_ = State::granted;
    queue(waiter, wakes);
    more = false;
  } while (!line.empty());
  waiting_.store(waiting_.load(std::memory_order_relaxed) - granted, std::memory_order_relaxed);
  const bool empty = line.empty();
  if (empty) flags_ = 0;
  if (granted != 0) passed_over_[kPlainLine] = 0;
  STINT_ASSERT(free <= std::int64_t{capacity()});
  word_.store(2 * free + (tracks_ || !empty ? kSlow : 0), std::memory_order_release);
  return !more;
}

void Semaphore::settle(Lock& lock, Wakes& wakes) noexcept {
  while (true) {
    if (wakes.full()) yield_lock(lock, wakes);
    const std::int64_t word = word_.load(std::memory_order_relaxed);
    if ((word & kSlow) == 0) return;  // another thread settled during yield_lock(): the fast paths own the word again
    std::int64_t free = word >> 1;
    Acquire* waiter = next_to_grant(free);
    for (int granted = 0; waiter != nullptr && granted < kGrantsPerBatch && !wakes.full(); ++granted) {
      grant(*waiter, free, wakes);
      waiter = next_to_grant(free);
    }
    STINT_ASSERT(free <= std::int64_t{capacity()});
    const bool slow = is_closed() || tracks_ || occupied() != 0;
    word_.store(2 * free + (slow ? kSlow : 0), std::memory_order_release);
    if (waiter == nullptr) return;
    yield_lock(lock, wakes);
  }
}

/// Appends to the line in the common case: only the plain line is occupied.
[[gnu::always_inline]] inline bool Semaphore::line_up_plain(Acquire& waiter) noexcept {
  mutex_.lock();
  const bool joins = is_plain() && waiter.kind_ == Acquire::Kind::plain && waiter.units_ - 1 < capacity();
  if (joins) {
    lines_[kPlainLine].push_back(waiter);
    waiting_.store(waiting_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    waiter.state_ = State::waiting;
  }
  mutex_.unlock();
  return joins;
}

Semaphore::State Semaphore::line_up(Acquire& waiter) noexcept {
  Wakes wakes;
  Lock lock(mutex_);
  if (is_closed()) return State::closed;
  if (impossible(waiter.units_)) return State::invalid;
  if (waiter.priority_ < kPriorityMin || waiter.priority_ > kPriorityMax) return State::invalid;
  const bool alone = occupied() == 0;
  if (const State state = take_or_link(waiter); state != State::waiting) return state;
  // The last waiter can be granted at once only by bypassing the head, or as the new head.
  if (!alone && (bypass_max_ != 0 || head() == &waiter)) settle(lock, wakes);
  return State::waiting;
}

Semaphore::State Semaphore::take_or_link(Acquire& waiter) noexcept {
  const std::int64_t wanted = 2 * std::int64_t{waiter.units_};
  std::int64_t word = word_.load(std::memory_order_relaxed);
  while ((word & kSlow) == 0) {  // the fast path may still change the word concurrently
    const bool fits = word >= wanted;
    if (!swap(word, fits ? word - wanted : word | kSlow, std::memory_order_acquire)) continue;
    if (fits) return State::granted;
    word |= kSlow;
  }
  if (occupied() == 0 && word - kSlow >= wanted) {
    word_.store(word - wanted, std::memory_order_relaxed);
    return State::granted;
  }
  link(waiter);
  return State::waiting;
}

void Semaphore::add_units(std::int64_t units) noexcept {
  if (!add_fast(units)) word_.store(word_.load(std::memory_order_relaxed) + 2 * units, std::memory_order_relaxed);
}

/// The most common release: the head wants exactly the returned units, no others are free, and it runs on this thread.
/// So the word does not change, no other waiter fits, and no wake-up is needed.
[[gnu::always_inline]] inline bool Semaphore::hand_to_head(std::uint32_t units) noexcept {
  if (!is_plain() || word_.load(std::memory_order_relaxed) != kSlow) return false;
  auto& line = lines_[kPlainLine];
  Acquire& waiter = line.front();
  if (waiter.units_ != units || waiter.kind_ == Acquire::Kind::foreign) return false;
  if (!Executor::post_here(waiter.executor(), waiter)) return false;  // it runs after the current runnable
  static_cast<detail::Link<Acquire>&>(waiter).unlink();
  waiter.state_ = State::granted;
  waiting_.store(waiting_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  passed_over_[kPlainLine] = 0;
  if (!line.empty()) return true;
  flags_ = 0;
  if (!tracks_) word_.store(0, std::memory_order_release);
  return true;
}

void Semaphore::give_back_slow(std::uint32_t units, std::uint32_t holder) noexcept {
  mutex_.lock();
  if (holder != 0 || !hand_to_head(units)) return give_back_locked(units, holder);
  mutex_.unlock();
}

/// Takes over the held lock and releases it.
void Semaphore::give_back_locked(std::uint32_t units, std::uint32_t holder) noexcept {
  Wakes wakes;
  Lock lock(mutex_, std::adopt_lock);
  if (holder == 0 && is_plain()) {
    if (!settle_plain((word_.load(std::memory_order_relaxed) >> 1) + std::int64_t{units}, wakes)) settle(lock, wakes);
    return;
  }
  if (holder != 0) remove_holder(holder);
  if (add_fast(units)) return;  // the line emptied meanwhile
  add_units(units);
  settle(lock, wakes);
}

/// Ends a wait from the waiter's side; false if it was already decided. The only place where a wait ends without a
/// decision by the semaphore.
bool Semaphore::leave(Acquire& waiter, State why) noexcept {
  Wakes wakes;
  Lock lock(mutex_);
  if (waiter.state_ != State::waiting) return false;
  const bool first = &lines_[line_of(waiter)].front() == &waiter || is_boosted();
  unlink(waiter);
  waiter.state_ = why;
  // The head may have blocked smaller requests behind it.
  if (first || bypass_max_ != 0 || occupied() == 0) settle(lock, wakes);
  return true;
}

std::optional<Permit> Semaphore::try_slow(std::uint32_t units, std::string_view label) noexcept {
  if (units == 0) return std::nullopt;
  if (!tracks_) return take_fast(units) ? std::optional(Permit(*this, units, 0)) : std::nullopt;
  const Lock lock(mutex_);
  const std::int64_t word = word_.load(std::memory_order_relaxed);
  if (is_closed() || occupied() != 0 || (word >> 1) < std::int64_t{units}) return std::nullopt;
  word_.store(word - 2 * std::int64_t{units}, std::memory_order_relaxed);
  return Permit(*this, units, add_holder(nullptr, label, units));
}

Permit Semaphore::adopt(std::uint32_t units) noexcept {
  if (units == 0) return {};
  const bool were_detached = take_detached(units);
  STINT_ASSERT(were_detached && "more units adopted than are detached");
  if (!tracks_) return {*this, units, 0};
  const Lock lock(mutex_);
  return {*this, units, add_holder(nullptr, {}, units)};
}

// ---- Resize and close ----------------------------------------------------------------------------------------------

/// False, and nothing changes, if fewer units are detached.
bool Semaphore::take_detached(std::uint32_t units) noexcept {
  std::uint64_t detached = detached_.load(std::memory_order_relaxed);
  while (detached >= units) {
    if (detached_.compare_exchange_weak(detached, detached - units, std::memory_order_relaxed)) return true;
  }
  return false;
}

Result<> Semaphore::release(std::uint32_t units) {
  if (!take_detached(units)) {
    return fail(Errc::invalid,
                "semaphore '" + name_ + "': " + std::to_string(units) +
                    " units released, but fewer are detached; units of a permit are returned by the permit");
  }
  if (units != 0) give_back(units, 0);
  return {};
}

void Semaphore::fail_impossible(Lock& lock, Wakes& wakes) noexcept {
  for (int line = 0; line < kLines; ++line) {
    const auto& waiters = lines_[static_cast<std::size_t>(line)];
    for (auto* link = waiters.first(); link != waiters.end();) {
      auto& waiter = static_cast<Acquire&>(*link);
      link = link->next();
      if (!impossible(waiter.units_)) continue;
      decide(waiter, State::invalid, wakes);
      if (!wakes.full()) continue;
      yield_lock(lock, wakes);
      link = waiters.first();  // the line may have changed: start over; decided waiters are unlinked
    }
  }
}

void Semaphore::resize(Lock& lock, Wakes& wakes, std::uint32_t capacity, std::int64_t free_change) noexcept {
  const bool stricter = capacity < this->capacity() || this->capacity() == 0;  // with capacity 0 any request may wait
  capacity_.store(capacity, std::memory_order_relaxed);
  add_units(free_change);
  if (occupied() == 0) return;
  if (stricter) fail_impossible(lock, wakes);
  settle(lock, wakes);
}

Result<> Semaphore::set_capacity(std::int64_t capacity) {
  if (capacity < 0 || capacity > std::int64_t{kCapacityMax}) {
    return fail(Errc::invalid, "semaphore '" + name_ + "': capacity " + std::to_string(capacity) +
                                   " is not within 0 and " + std::to_string(kCapacityMax));
  }
  Wakes wakes;
  Lock lock(mutex_);
  resize(lock, wakes, static_cast<std::uint32_t>(capacity), capacity - std::int64_t{this->capacity()});
  return {};
}

void Semaphore::forget(std::uint32_t units, std::uint32_t holder) noexcept {
  Wakes wakes;
  Lock lock(mutex_);
  if (holder != 0) remove_holder(holder);
  const std::uint32_t before = capacity();
  const std::uint32_t after = before - std::min(before, units);
  resize(lock, wakes, after, std::int64_t{units} - std::int64_t{before - after});
}

void Semaphore::close() noexcept {
  Wakes wakes;
  Lock lock(mutex_);
  flags_ |= kClosed;
  word_.fetch_or(kSlow, std::memory_order_relaxed);
  while (occupied() != 0) {
    for (int decided = 0; occupied() != 0 && decided < kGrantsPerBatch; ++decided)
      decide(*head(), State::closed, wakes);
    if (occupied() != 0) yield_lock(lock, wakes);
  }
}

bool Semaphore::closed() const noexcept {
  const Lock lock(mutex_);
  return is_closed();
}

// ---- The wait ------------------------------------------------------------------------------------------------------

/// Takes free units or joins the line. Any state other than `waiting` means that the wait is already over.
Acquire::State Acquire::enter() noexcept {
  owed_ = kUndelivered;
  const State state = semaphore_.line_up(*this);
  if (state != State::waiting) state_ = state;
  return state;
}

bool Acquire::line_up() noexcept {
  owed_ = kUndelivered;
  if (!semaphore_.line_up_plain(*this)) return line_up_slow();
  const Executor* const here = Executor::here();  // the same as executor(), but one thread-local load
  return here == nullptr || here->owners() != nullptr ? owner_lines_up() : false;
}

bool Acquire::line_up_slow() noexcept {
  if (enter() == State::waiting) return owner_lines_up();
  unpark();
  return true;
}

/// Always returns false, for the caller's tail call.
bool Acquire::owner_lines_up() noexcept {
  if (executor().owners() != nullptr && detail::Owners::begin_wait(*this)) owed_ |= kOwnerWaits;
  return false;
}

bool Acquire::ready() const noexcept {
  const std::lock_guard lock(semaphore_.mutex_);
  return state_ != State::waiting;
}

/// Ends the wait from the waiter's side; false if it was already decided.
bool Acquire::withdraw(State why) noexcept {
  if (!semaphore_.leave(*this, why)) return false;
  owed_ &= static_cast<std::uint8_t>(~kUndelivered);
  return true;
}

void Acquire::give_up(State why) noexcept {
  if (withdraw(why)) complete();
}

void Acquire::withdraw_owed() noexcept {
  const std::uint8_t owed = std::exchange(owed_, std::uint8_t{0});
  if ((owed & kUndelivered) != 0) take_back();
  if ((owed & kOwnerWaits) != 0) owner_waited();
}

void Acquire::take_back() noexcept {
  if (!semaphore_.leave(*this, State::stopped) && state_ == State::granted) semaphore_.give_back(units_, 0);
}

void Acquire::owner_waited() noexcept { detail::Owners::end_wait(*this); }

std::uint32_t Acquire::enlist() noexcept {
  const std::lock_guard lock(semaphore_.mutex_);
  return semaphore_.add_holder(this, {}, units_);
}

Error Acquire::failure() const {
  const std::string semaphore = "semaphore '" + semaphore_.name() + "': ";
  switch (state_) {
    case State::timed_out: return {Errc::timed_out, semaphore + "no permit in time"};
    case State::closed: return {Errc::closed, semaphore + "closed"};
    case State::invalid:
      return {Errc::invalid, semaphore + std::to_string(units_) + " units of " + std::to_string(semaphore_.capacity()) +
                                 " can never be granted"};
    case State::idle:
    case State::waiting:
    case State::granted:
    case State::stopped: break;
  }
  STINT_ASSERT(state_ == State::stopped);
  return {Errc::cancelled, semaphore + "the wait was cancelled"};
}

bool TimedAcquire::await_suspend(std::coroutine_handle<>) noexcept {
  if (!begin()) return true;
  if (line_up()) return false;
  if (deadline_ != TimePoint::max()) executor().arm(*this, deadline_);  // max() means no deadline
  return true;
}

bool AcquireFor::await_suspend(std::coroutine_handle<>) noexcept {
  if (!begin()) return true;
  if (line_up()) return false;
  const Deadline deadline = Deadline::after(executor().now(), limit_);
  if (!deadline.is_never()) executor().arm(*this, deadline.when());
  return true;
}

bool LabelledAcquire::await_suspend(std::coroutine_handle<>) noexcept {
  if (!begin()) return true;
  since_ = executor().now();
  if (line_up()) return false;
  if (!deadline_.is_never()) executor().arm(*this, deadline_.when());
  return true;
}

}  // namespace stint
