/// Several limits at once, all or nothing: what a run needs before it may start.
///
/// Limits are acquired one after another in one global order (by name, then by address), so overlapping sets can't
/// deadlock, whatever the order in which they were listed. Within each limit the order is that of its semaphore. A
/// caller that waits for its second limit already holds the first; if that hurts, name the scarce limit so that it
/// sorts first. A wait that fails, times out or is cancelled returns every permit taken so far; a partial set is never
/// visible. `PermitSet::back_off` returns the permits for a while and keeps the place in line. Thread-safe: a
/// `LimitSet` is immutable; a `PermitSet` has one owner and may be destroyed on any thread. The semaphores must outlive
/// both.
#pragma once

#include "stint/semaphore.hpp"

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace stint {

/// A request for a set.
struct LimitSetOptions {
  int priority = 0;        ///< in the line of every limit
  std::string label = {};  ///< shown in the semaphores' listings
  Deadline deadline = {};  ///< of the whole wait; free units are granted even if it has passed
};

/// Permits of several semaphores; returns them when destroyed. Move-only.
class [[nodiscard]] PermitSet {
 public:
  PermitSet() noexcept = default;  ///< holds nothing
  PermitSet(PermitSet&&) noexcept = default;
  PermitSet& operator=(PermitSet&&) noexcept = default;
  ~PermitSet() = default;

  [[nodiscard]] bool empty() const noexcept { return held_.empty(); }
  /// Units held of one semaphore.
  [[nodiscard]] std::uint32_t units(const Semaphore& semaphore) const noexcept;
  /// Returns all permits now.
  void release() noexcept { held_.clear(); }

  /// Returns all permits, sleeps, and acquires them again, all or nothing, at its former place: at each limit it goes
  /// ahead of every request of its priority that first asked later. Among several that return, the one that first asked
  /// earlier goes first. To prevent starvation, new requests are passed over no more often than lower priorities are
  /// (`passed_over_max`). `timed_out` at once if the sleep would outlast `deadline`; otherwise fails like
  /// `LimitSet::acquire`. After a failure or a cancellation the set is empty.
  [[nodiscard]] Task<Result<>> back_off(Duration pause, Deadline deadline = {});

 private:
  friend class LimitSet;
  struct Held {
    Semaphore* semaphore;
    std::uint64_t turn;
    Permit permit;
  };
  std::vector<Held> held_;
  LimitSetOptions options_;
};

class LimitSet {
 public:
  struct Limit {
    Semaphore* semaphore;
    std::uint32_t units = 1;
  };
  /// A limit that is listed twice is requested with the sum of the units. An empty set is granted at once.
  LimitSet(std::initializer_list<Limit> limits) : LimitSet(std::vector<Limit>(limits)) {}
  explicit LimitSet(std::vector<Limit> limits);

  /// Waits for all → Result<PermitSet>. Fails at once, before anything is taken, with `invalid` if a request exceeds a
  /// capacity and with `closed` if a limit is closed.
  [[nodiscard]] Task<Result<PermitSet>> acquire(LimitSetOptions options = LimitSetOptions()) const;
  /// All or nothing, without waiting; never barges.
  [[nodiscard]] std::optional<PermitSet> try_acquire(LimitSetOptions options = LimitSetOptions()) const;
  /// In acquisition order.
  [[nodiscard]] std::span<const Limit> limits() const noexcept { return limits_; }

 private:
  [[nodiscard]] Result<> check(const LimitSetOptions& options) const;
  std::vector<Limit> limits_;
};

}  // namespace stint
