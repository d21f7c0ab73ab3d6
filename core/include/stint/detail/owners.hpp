/// Who holds mutexes, and in which lines those chains wait: what priority inheritance walks over.
///
/// One lock for the whole process, since a walk goes from mutex to holder to the line in which the holder waits, across
/// threads. Lock order: this one, then a semaphore's; never the other way. It is taken by mutexes, and by waits for a
/// semaphore of chains that hold one; a chain on an executor where nobody holds a mutex pays one load.
/// Each executor has its own table of owners, which only its thread looks into; what the entries contain is under the
/// lock. Not for use outside the library.
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
  /// The highest priority that waits for something it holds; kNobody if nobody does.
  int boost() const noexcept;

  static constexpr int kNobody = Semaphore::kPriorityMin - 1;
  Chain& chain;
  Executor& executor;
  List<Mutex> held;
  std::vector<OwnerWait*> waits;  // its own, or those of the chains beneath it
};

/// A wait in a line, whose place there depends on who waits for what its chain, or one above it, holds.
class OwnerWait {
 public:
  int asked() const noexcept { return asked_; }
  int effective() const noexcept { return effective_; }
  /// True if `owner` waits here itself, not through a chain beneath it.
  bool is_of(const Owner& owner) const noexcept { return &owner.chain == chain_; }
  /// The next mutex on the way; null if this is no wait for a mutex.
  virtual const Mutex* mutex() const noexcept { return nullptr; }
  /// True if it ends only by a grant or a cancel.
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
  /// The effective priority has changed: goes to its new place.
  virtual void moved(Wakes& wakes) noexcept = 0;

 private:
  friend class Owners;
  const Chain* chain_ = nullptr;
  std::vector<Owner*> owners_;  // its chain and those above, as far as they hold something
  const int asked_;
  int effective_;
};

/// The wait for a semaphore of a chain that holds mutexes.
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
  /// `chain` is at its end: what it still holds goes to `heir`, or to nobody in particular.
  static void chain_ended(Chain& chain, Chain* heir) noexcept;
  static void executor_gone(Executor& executor) noexcept;

  // Under the lock, too.
  static Owner& of(Chain& chain);
  static void drop(Owner& owner, Wakes& wakes) noexcept;
  /// Brings every wait that depends on `owner`, and on those behind it, to its place. Under the lock, on any thread.
  static void refresh(Owner* owner, Wakes& wakes) noexcept;

 private:
  static void refresh(std::vector<OwnerWait*> waits, Wakes& wakes) noexcept;
  static bool refresh(OwnerWait& wait, Wakes& wakes) noexcept;
  static bool add_those_behind(std::vector<OwnerWait*>& waits);

  std::unordered_map<const Chain*, Owner> owners_;
  std::unordered_map<const Acquire*, SemaphoreWait> waits_;
};

}  // namespace detail
}  // namespace stint
