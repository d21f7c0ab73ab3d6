// Invariants, all under the lock:
// 1. A mutex is in the list of its owner, and an owner exists exactly while that list is not empty.
// 2. A wait and its owners are linked both ways: the owners are its chain and those above it that held a mutex when the
// wait began and still do.
// 3. A wait's effective priority is the maximum of its own and its owners' boosts, and its place in line follows from
// that: every change of a line or an owner ends with refresh().
#include "stint/detail/owners.hpp"

#include "stint/mutex.hpp"

#include <algorithm>

namespace stint {

void Chain::leave_mutexes_slow(Chain* successor) noexcept { detail::Owners::chain_ended(*this, successor); }

namespace detail {
namespace {

// The library's only mutable global: a walk crosses mutexes, chains and executors that are otherwise independent, so
// nothing smaller could own it.
constinit std::mutex the_lock;

}  // namespace

void OwnersDeleter::operator()(Owners* owners) const noexcept { std::default_delete<Owners>()(owners); }

Owners::Lock Owners::lock() noexcept { return Lock(the_lock); }

int Owner::boost() const noexcept {
  int highest = kNoWaiter;
  held.for_each([&highest](const Mutex& mutex) { highest = std::max(highest, mutex.highest_waiter()); });
  return highest;
}

// ---- A wait --------------------------------------------------------------------------------------------------------

void OwnerWait::enter(const Chain& chain, std::vector<Owner*> owners) {
  chain_ = &chain;
  owners_ = std::move(owners);
  for (Owner* owner : owners_) owner->waits.push_back(this);
  effective_ = due();
}

void OwnerWait::leave() noexcept {
  for (Owner* owner : owners_) std::erase(owner->waits, this);
  owners_.clear();
}

int OwnerWait::due() const noexcept {
  int highest = asked_;
  for (const Owner* owner : owners_) highest = std::max(highest, owner->boost());
  return highest;
}

void SemaphoreWait::moved(Wakes& wakes) noexcept {
  acquire_.semaphore_.set_boost(boost_, effective() > asked() ? std::optional(effective()) : std::nullopt, wakes);
}

bool Owners::refresh(OwnerWait& wait, Wakes& wakes) noexcept {
  const int due = wait.due();
  if (due == wait.effective_) return false;
  wait.effective_ = due;
  wait.moved(wakes);
  return true;
}

/// Adds every wait that depends on those in `waits`; returns true if there is a cycle.
bool Owners::add_dependents(std::vector<OwnerWait*>& waits) {
  bool cyclic = false;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    const Owner* const next = waits[i]->mutex() != nullptr ? waits[i]->mutex()->owner_ : nullptr;
    if (next == nullptr) continue;
    for (OwnerWait* wait : next->waits) {
      const bool known = std::ranges::find(waits, wait) != waits.end();
      if (!known) waits.push_back(wait);
      cyclic = cyclic || known;
    }
  }
  return cyclic;
}

/// Waits for mutexes first, to a fixed point. Then waits for semaphores, which may grant when a wait moves and so must
/// not see intermediate priorities. Waits in a cycle (they have a deadline, or they would have been refused) restart
/// from their own priority, or a priority could sustain itself.
void Owners::refresh(std::vector<OwnerWait*> waits, Wakes& wakes) noexcept {
  const bool cyclic = add_dependents(waits);
  const auto semaphores = std::ranges::partition(waits, [](OwnerWait* wait) { return wait->mutex() != nullptr; });
  const std::ranges::subrange mutexes(waits.begin(), semaphores.begin());
  for (OwnerWait* wait : mutexes) {
    if (!cyclic) break;
    wait->effective_ = wait->asked_;
    wait->moved(wakes);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (OwnerWait* wait : mutexes) changed = refresh(*wait, wakes) || changed;
  }
  for (OwnerWait* wait : semaphores) refresh(*wait, wakes);
}

void Owners::refresh(Owner* owner, Wakes& wakes) noexcept {
  if (owner != nullptr && !owner->waits.empty()) refresh(owner->waits, wakes);
}

bool Owners::begin_wait(Acquire& acquire) noexcept {
  const Chain& chain = acquire.chain();
  auto owners = at_or_above(chain);
  if (owners.empty()) return false;
  Wakes wakes;
  const Lock guard = lock();
  SemaphoreWait& wait = chain.executor().owners_->waits_.try_emplace(&acquire, acquire).first->second;
  wait.enter(chain, std::move(owners));
  if (wait.effective() != wait.asked()) wait.moved(wakes);
  return true;
}

void Owners::end_wait(Acquire& acquire) noexcept {
  const Lock guard = lock();
  Owners& here = *acquire.chain().executor().owners_;
  const auto found = here.waits_.find(&acquire);
  found->second.leave();
  here.waits_.erase(found);
}

// ---- Owners --------------------------------------------------------------------------------------------------------

/// Nearest owner first.
std::vector<Owner*> Owners::at_or_above(const Chain& chain) {
  std::vector<Owner*> found;
  Owners* const here = chain.executor().owners();
  if (here == nullptr || here->owners_.empty()) return found;
  for (const Chain* each = &chain; each != nullptr; each = each->above()) {
    if (const auto owner = here->owners_.find(each); owner != here->owners_.end()) found.push_back(&owner->second);
  }
  return found;
}

Owner& Owners::of(Chain& chain) {
  Executor& executor = chain.executor();
  if (executor.owners_ == nullptr) executor.owners_.reset(std::make_unique<Owners>().release());
  return executor.owners_->owners_.try_emplace(&chain, chain, executor).first->second;
}

void Owners::drop(Owner& owner, Wakes& wakes) noexcept {
  // A chain beneath it may wait while another one unlocks the mutex.
  for (OwnerWait* wait : owner.waits) std::erase(wait->owners_, &owner);
  if (!owner.waits.empty()) refresh(std::move(owner.waits), wakes);
  owner.executor.owners_->owners_.erase(&owner.chain);
}

void Owners::chain_ended(Chain& chain, Chain* successor) noexcept {
  Owners& here = *chain.executor().owners_;
  const auto found = here.owners_.find(&chain);
  if (found == here.owners_.end()) return;
  Owner& owner = found->second;
  Wakes wakes;
  const Lock guard = lock();
  Owner* const next = successor != nullptr ? &of(*successor) : nullptr;
  while (!owner.held.empty()) owner.held.front().pass_to(next);
  drop(owner, wakes);
}

void Owners::executor_destroyed(Executor& executor) noexcept {
  const Lock guard = lock();
  STINT_ASSERT(executor.owners_->waits_.empty());
  for (auto& [chain, owner] : executor.owners_->owners_) {
    while (!owner.held.empty()) owner.held.front().pass_to(nullptr);
  }
  executor.owners_.reset();
}

}  // namespace detail
}  // namespace stint
