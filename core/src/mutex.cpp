// Invariants, all under the lock of `stint/detail/owners.hpp`:
// 1. A free mutex has no waiters: a release passes it on in the same step.
// 2. A wait is in both lists exactly while its state is `waiting`; it is queued at its executor under the lock that
// decided it.
// 3. `line_` is sorted by effective priority, then by arrival.
#include "stint/mutex.hpp"

#include <algorithm>

namespace stint {

using detail::Owner;
using detail::Owners;

Mutex::~Mutex() {
  const auto guard = Owners::lock();
  STINT_ASSERT(waiting_ == 0 && "this mutex still has waiters");
  STINT_ASSERT(!is_held() && "this mutex is still locked");
}

// ---- The line ------------------------------------------------------------------------------------------------------

int Mutex::highest_waiter() const noexcept { return line_.empty() ? Owner::kNoWaiter : line_.front().effective(); }

void Mutex::sort_in(MutexLock& wait) noexcept {
  auto& link = static_cast<detail::Link<MutexLock>&>(wait);
  link.unlink();
  line_.push_back(wait);
  const auto goes_after = [&wait](const detail::Link<MutexLock>& other) {
    const auto& ahead = static_cast<const MutexLock&>(other);
    return ahead.effective() != wait.effective() ? ahead.effective() < wait.effective() : ahead.ticket_ > wait.ticket_;
  };
  for (auto* ahead = link.prev(); ahead != line_.end() && goes_after(*ahead); ahead = link.prev()) {
    link.unlink();
    ahead->insert_before(link);
  }
}

void Mutex::take_out(MutexLock& wait, State why, Wakes& wakes) noexcept {
  if (&arrivals_.front() == &wait) passed_over_ = 0;
  static_cast<detail::Link<MutexLock>&>(wait).unlink();
  static_cast<detail::Link<MutexArrival>&>(wait).unlink();
  --waiting_;
  wait.state_ = why;
  wait.OwnerWait::leave();
  Owners::refresh(owner_, wakes);  // it may have boosted the owner
}

/// Grants the mutex to the next waiter, if there is one.
void Mutex::pass_on(Wakes& wakes) noexcept {
  if (waiting_ == 0) return;
  MutexLock& oldest = arrivals_.front();
  MutexLock& next = passed_over_ < kPassedOverMax ? line_.front() : oldest;
  if (&next != &oldest) ++passed_over_;
  take_out(next, State::granted, wakes);
  granted_ = &next;
  wakes.post(next.executor(), next);  // its thread may run at once, but blocks on the lock
}

/// True if a wait of `self` for this mutex would depend on a mutex that `self` holds. Counts only waits that nothing
/// but a grant ends.
bool Mutex::would_close_cycle(const Owner& self) const {
  std::vector<const Owner*> seen;
  for (std::vector<const Owner*> next{owner_}; !next.empty();) {
    const Owner* const owner = next.back();
    next.pop_back();
    if (owner == &self) return true;
    if (owner == nullptr || std::ranges::find(seen, owner) != seen.end()) continue;
    seen.push_back(owner);
    for (const detail::OwnerWait* wait : owner->waits) {
      if (wait->mutex() != nullptr && wait->is_of(*owner) && wait->lasts()) next.push_back(wait->mutex()->owner_);
    }
  }
  return false;
}

/// The reason to refuse the request; `idle` if it may wait.
Mutex::State Mutex::refusal(const LockOptions& options, const std::vector<Owner*>& above) const noexcept {
  if (closed_) return State::closed;
  if (options.priority < Semaphore::kPriorityMin || options.priority > Semaphore::kPriorityMax) return State::invalid;
  if (owner_ != nullptr && std::ranges::find(above, owner_) != above.end()) return State::recursive;
  return State::idle;
}

Mutex::State Mutex::enter(MutexLock& wait, Chain& chain) {
  Wakes wakes;
  const auto guard = Owners::lock();
  auto above = Owners::at_or_above(chain);
  if (const State state = refusal(wait.options_, above); state != State::idle) return state;
  if (!is_held()) {
    take(chain, wait.options_);
    return State::granted;
  }
  const bool holds = !above.empty() && &above.front()->chain == &chain;
  if (holds && wait.lasts() && would_close_cycle(*above.front())) return State::cycle;
  wait.ticket_ = ++tickets_;
  wait.OwnerWait::enter(chain, std::move(above));
  sort_in(wait);
  arrivals_.push_back(wait);
  ++waiting_;
  wait.state_ = State::waiting;
  Owners::refresh(owner_, wakes);
  return State::waiting;
}

// ---- The owner -----------------------------------------------------------------------------------------------------

void Mutex::take(Chain& chain, const LockOptions& options) {
  owner_ = &Owners::of(chain);
  owner_->held.push_back(*this);
  holder_label_ = options.label;
  holder_priority_ = options.priority;
  since_ = chain.executor().now();
}

/// The owner's chain ended but its guard still exists.
void Mutex::pass_to(Owner* successor) noexcept {
  unlink();
  owner_ = successor;
  if (successor != nullptr) {
    successor->held.push_back(*this);
  } else {
    abandoned_ = true;
  }
}

void Mutex::release(Wakes& wakes) noexcept {
  Owner* const former = std::exchange(owner_, nullptr);
  abandoned_ = false;
  unlink();
  if (former != nullptr) {
    if (former->held.empty()) {
      Owners::drop(*former, wakes);
    } else {
      Owners::refresh(former, wakes);
    }
  }
  pass_on(wakes);
}

bool Mutex::is_not_owner(const Chain& chain) const noexcept {
  if (owner_ == nullptr) return false;  // abandoned: any chain may unlock
  for (const Chain* each = &chain; each != nullptr; each = each->above()) {
    if (each == &owner_->chain) return false;
  }
  return true;
}

Result<> Mutex::unlock(const Chain& chain) {
  Wakes wakes;
  const auto guard = Owners::lock();
  if (is_not_owner(chain)) {
    return fail(Errc::denied, "mutex '" + name_ +
                                  "': unlocked by a chain that does not own it; the owner is another chain" +
                                  (holder_label_.empty() ? "" : ", '" + holder_label_ + "'"));
  }
  release(wakes);
  return {};
}

void Mutex::guard_destroyed() noexcept {
  Wakes wakes;
  const auto guard = Owners::lock();
  STINT_ASSERT((owner_ == nullptr || owner_->executor.is_current()) &&
               "a guard must be destroyed on its owner's thread");
  release(wakes);
}

// ---- The rest ------------------------------------------------------------------------------------------------------

Result<MutexGuard> Mutex::try_lock(Chain& chain, const LockOptions& options) {
  const auto guard = Owners::lock();
  const State state = refusal(options, Owners::at_or_above(chain));
  if (state != State::idle) return std::unexpected(failure(state, options));
  if (is_held()) return std::unexpected(Error(Errc::conflict, Retry::safe, "mutex '" + name_ + "': held by another"));
  take(chain, options);
  return MutexGuard(*this);
}

void Mutex::close() noexcept {
  Wakes wakes;
  const auto guard = Owners::lock();
  closed_ = true;
  while (waiting_ != 0) {
    MutexLock& wait = arrivals_.front();
    take_out(wait, State::closed, wakes);
    if (wakes.full()) wakes.flush();
    wakes.post(wait.executor(), wait);
  }
}

bool Mutex::closed() const noexcept {
  const auto guard = Owners::lock();
  return closed_;
}

std::size_t Mutex::waiting() const noexcept {
  const auto guard = Owners::lock();
  return waiting_;
}

std::optional<Mutex::Holder> Mutex::holder() const {
  const auto guard = Owners::lock();
  if (owner_ == nullptr && !abandoned_) return std::nullopt;
  const int boost = owner_ != nullptr ? owner_->boost() : Owner::kNoWaiter;
  return Holder{holder_label_, holder_priority_, std::max(holder_priority_, boost), since_, abandoned_};
}

std::vector<Mutex::Waiter> Mutex::waiters() const {
  const auto guard = Owners::lock();
  std::vector<Waiter> found;
  line_.for_each([&found](const MutexLock& wait) {
    found.push_back({std::string(wait.options_.label), wait.asked(), wait.effective()});
  });
  return found;
}

LockOptions Mutex::options_of(int priority, Deadline deadline) noexcept {
  LockOptions options;
  options.priority = priority;
  options.deadline = deadline;
  return options;
}

Error Mutex::failure(State state, const LockOptions& options) const {
  const std::string mutex = "mutex '" + name_ + "': ";
  switch (state) {
    case State::timed_out: return {Errc::timed_out, mutex + "not free in time"};
    case State::closed: return {Errc::closed, mutex + "closed"};
    case State::invalid:
      return {Errc::invalid, mutex + "priority " + std::to_string(options.priority) + " is not within " +
                                 std::to_string(Semaphore::kPriorityMin) + " and " +
                                 std::to_string(Semaphore::kPriorityMax)};
    case State::recursive:
      return {Errc::invalid, mutex + "already held by the calling chain: it would wait for itself"};
    case State::cycle:
      return {
          Errc::conflict, Retry::safe,
          mutex + "deadlock: its holder waits for a mutex of the calling chain; unlock that one first, then try again"};
    case State::idle:
    case State::waiting:
    case State::granted:
    case State::stopped: break;
  }
  STINT_ASSERT(state == State::stopped);
  return {Errc::cancelled, mutex + "the wait was cancelled"};
}

// ---- The wait ------------------------------------------------------------------------------------------------------

bool MutexLock::await_suspend(std::coroutine_handle<>) noexcept {
  if (!park()) return true;
  const State state = mutex_.enter(*this, chain());
  if (state != State::waiting) {
    state_ = state;
    unpark();
    return false;
  }
  undelivered_ = true;
  if (!options_.deadline.is_never()) executor().arm(*this, options_.deadline.when());
  return true;
}

Result<MutexGuard> MutexLock::await_resume() {
  if (std::exchange(undelivered_, false) && state_ == State::granted) {
    const auto guard = Owners::lock();
    mutex_.granted_ = nullptr;
    mutex_.take(chain(), options_);
  }
  if (state_ != State::granted) return std::unexpected(mutex_.failure(state_, options_));
  return MutexGuard(mutex_);
}

bool MutexLock::ready() const noexcept {
  const auto guard = Owners::lock();
  return state_ != State::waiting;
}

void MutexLock::give_up(State why) noexcept {
  Wakes wakes;
  {
    const auto guard = Owners::lock();
    if (state_ != State::waiting) return;
    mutex_.take_out(*this, why, wakes);
  }
  undelivered_ = false;
  complete();
}

/// The frame is destroyed before it saw how the wait ended.
MutexLock::~MutexLock() {
  if (!undelivered_) return;
  Wakes wakes;
  const auto guard = Owners::lock();
  if (state_ == State::waiting) {
    mutex_.take_out(*this, State::stopped, wakes);
  } else if (state_ == State::granted) {
    mutex_.granted_ = nullptr;
    mutex_.pass_on(wakes);
  }
}

void MutexLock::moved(Wakes&) noexcept { mutex_.sort_in(*this); }

Result<MutexGuard> MutexTryLock::await_resume() { return mutex_.try_lock(*chain_, options_); }

Result<> MutexUnlock::await_resume() {
  if (guard_.mutex_ == nullptr) return fail(Errc::invalid, "this guard is empty");
  STINT_CHECK(guard_.mutex_->unlock(*chain_));
  guard_.mutex_ = nullptr;
  return {};
}

MutexGuard::~MutexGuard() {
  if (mutex_ != nullptr) mutex_->guard_destroyed();
}

}  // namespace stint
