// Invariants, all under the lock:
// 1. A mutex is in the list of its owner, and an owner exists while that list is not empty.
// 2. A wait knows its owners and they know it: its chain and those above that held something when it began, and still
//    do.
// 3. A wait's effective priority is the highest of what it asked for and of its owners' boosts, and its place in its
//    line is according to that: every change of a line or of an owner ends with refresh().
#include "stint/detail/owners.hpp"

#include "stint/mutex.hpp"

#include <algorithm>

namespace stint {

void Chain::leave_mutexes_slow(Chain* heir) noexcept { detail::Owners::chain_ended(*this, heir); }

namespace detail {
namespace {

// The one mutable global of the library: a walk goes through mutexes, chains and executors that know nothing of each
// other, so no smaller thing could own it.
constinit std::mutex the_lock;

}  // namespace

void OwnersDeleter::operator()(Owners* owners) const noexcept { std::default_delete<Owners>()(owners); }

Owners::Lock Owners::lock() noexcept { return Lock(the_lock); }

int Owner::boost() const noexcept {
  int highest = kNobody;
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

/// Adds every wait that depends on those in `waits`; true if one is met twice.
bool Owners::add_those_behind(std::vector<OwnerWait*>& waits) {
  bool round = false;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    const Owner* const next = waits[i]->mutex() != nullptr ? waits[i]->mutex()->owner_ : nullptr;
    if (next == nullptr) continue;
    for (OwnerWait* wait : next->waits) {
      const bool known = std::ranges::find(waits, wait) != waits.end();
      if (!known) waits.push_back(wait);
      round = round || known;
    }
  }
  return round;
}

/// Mutexes first, until nothing changes; then the semaphores, which may grant something when a wait moves, and so must
/// not see what is not final. Waits that go round in a circle (with a deadline, or it would have been refused) begin
/// anew from what each asked for, or a priority could keep itself up.
void Owners::refresh(std::vector<OwnerWait*> waits, Wakes& wakes) noexcept {
  const bool round = add_those_behind(waits);
  const auto semaphores = std::ranges::partition(waits, [](OwnerWait* wait) { return wait->mutex() != nullptr; });
  const std::ranges::subrange mutexes(waits.begin(), semaphores.begin());
  for (OwnerWait* wait : mutexes) {
    if (!round) break;
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

/// The nearest first.
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
  // Chains beneath it may wait while one of them unlocks what it was lent.
  for (OwnerWait* wait : owner.waits) std::erase(wait->owners_, &owner);
  if (!owner.waits.empty()) refresh(std::move(owner.waits), wakes);
  owner.executor.owners_->owners_.erase(&owner.chain);
}

void Owners::chain_ended(Chain& chain, Chain* heir) noexcept {
  Owners& here = *chain.executor().owners_;
  const auto found = here.owners_.find(&chain);
  if (found == here.owners_.end()) return;
  Owner& owner = found->second;
  Wakes wakes;
  const Lock guard = lock();
  Owner* const next = heir != nullptr ? &of(*heir) : nullptr;
  while (!owner.held.empty()) owner.held.front().pass_to(next);
  drop(owner, wakes);
}

void Owners::executor_gone(Executor& executor) noexcept {
  const Lock guard = lock();
  STINT_ASSERT(executor.owners_->waits_.empty());
  for (auto& [chain, owner] : executor.owners_->owners_) {
    while (!owner.held.empty()) owner.held.front().pass_to(nullptr);
  }
  executor.owners_.reset();
}

}  // namespace detail
}  // namespace stint
