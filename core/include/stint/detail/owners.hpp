/// Tracks which chains hold mutexes and in which lines those chains wait: the graph that priority inheritance walks.
///
/// One lock for the whole process, since a walk goes from a mutex to its holder to the line in which the holder waits,
/// across threads. Lock order: this lock, then a semaphore's; never the reverse. It is taken by mutexes, and by chains
/// that hold a mutex and wait for a semaphore; on an executor without mutex holders a wait pays one load. Each executor
/// has its own table of owners, accessed only by its thread; the contents of the entries are protected by the lock.
/// Internal to the library.
#pragma once

#include "stint/cancel.hpp"
#include "stint/semaphore.hpp"

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace stint {

class Mutex;

namespace detail {

class OwnerWait;

/// A chain that holds mutexes.
struct Owner {
  Owner(Chain& owner, Executor& where) noexcept : chain(owner), executor(where) {}
  /// The highest priority among the waiters for its mutexes; kNoWaiter if there are none.
  int boost() const noexcept;

  static constexpr int kNoWaiter = Semaphore::kPriorityMin - 1;
  Chain& chain;
  Executor& executor;
  List<Mutex> held;
  std::vector<OwnerWait*> waits;  // waits of this chain and of chains beneath it
};

/// A wait in a line; its place depends on the waiters for mutexes that its chain, or one above it, holds.
class OwnerWait {
 public:
  int asked() const noexcept { return asked_; }
  int effective() const noexcept { return effective_; }
  /// True if `owner` itself waits here, not a chain beneath it.
  bool is_of(const Owner& owner) const noexcept { return &owner.chain == chain_; }
  /// The mutex waited for; null if this is a wait for a semaphore.
  virtual const Mutex* mutex() const noexcept { return nullptr; }
  /// True if only a grant or a cancellation ends it (no deadline).
  virtual bool lasts() const noexcept { return false; }

 protected:
  explicit OwnerWait(int asked) noexcept : asked_(asked), effective_(asked) {}
  ~OwnerWait() = default;
  OwnerWait(const OwnerWait&) = delete;
  OwnerWait& operator=(const OwnerWait&) = delete;

  // Under the lock.
  void enter(const Chain& chain, std::vector<Owner*> owners);
  void leave() noexcept;
  const std::vector<Owner*>& owners() const noexcept { return owners_; }
  int due() const noexcept;
  /// The effective priority has changed: moves to the new place in line.
  virtual void moved(Wakes& wakes) noexcept = 0;

 private:
  friend class Owners;
  const Chain* chain_ = nullptr;
  std::vector<Owner*> owners_;  // its chain and those above it that hold a mutex
  const int asked_;
  int effective_;
};

/// A wait for a semaphore by a chain that holds mutexes.
class SemaphoreWait final : public OwnerWait {
 public:
  explicit SemaphoreWait(Acquire& acquire) noexcept : OwnerWait(acquire.priority_), acquire_(acquire) {
    boost_.waiter = &acquire;
  }

 private:
  friend class Owners;
  void moved(Wakes& wakes) noexcept override;
  Acquire& acquire_;
  Semaphore::Boost boost_;
};

/// The owners on one executor.
class Owners {
 public:
  using Lock = std::unique_lock<std::mutex>;
  [[nodiscard]] static Lock lock() noexcept;

  // On the executor's thread.
  static std::vector<Owner*> at_or_above(const Chain& chain);
  static bool begin_wait(Acquire& acquire) noexcept;
  static void end_wait(Acquire& acquire) noexcept;
  /// `chain` has ended: mutexes it still holds pass to `successor`, or are left without an owner if `successor` is
  /// null.
  static void chain_ended(Chain& chain, Chain* successor) noexcept;
  static void executor_destroyed(Executor& executor) noexcept;

  // Under the lock, too.
  static Owner& of(Chain& chain);
  static void drop(Owner& owner, Wakes& wakes) noexcept;
  /// Moves every wait that depends on `owner`, directly or transitively, to its place. Under the lock, on any thread.
  static void refresh(Owner* owner, Wakes& wakes) noexcept;

 private:
  static void refresh(std::vector<OwnerWait*> waits, Wakes& wakes) noexcept;
  static bool refresh(OwnerWait& wait, Wakes& wakes) noexcept;
  static bool add_dependents(std::vector<OwnerWait*>& waits);

  std::unordered_map<const Chain*, Owner> owners_;
  std::unordered_map<const Acquire*, SemaphoreWait> waits_;
};

}  // namespace detail
}  // namespace stint
