/// Several limits at once, all or nothing: what a run needs before it may start.
///
/// The limits are taken one after another in one order for everybody (by name, then by address), so sets that overlap
/// can't deadlock, however they were written down. Within each limit the order is that of its semaphore. Who waits for
/// the second limit already holds the first: put the scarce one first by name if that hurts. A wait that fails, times
/// out or is cancelled anywhere on the way gives everything back; nobody ever sees half a set. `PermitSet::back_off`
/// gives the places back for a while and keeps the turn. Thread-safe: a `LimitSet` does not change, and a `PermitSet`
/// has one owner and may be destroyed on any thread. Both must be outlived by their semaphores.
#pragma once

#include "stint/semaphore.hpp"

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace stint {

/// How a set is asked for.
struct LimitSetOptions {
  int priority = 0;        ///< in every one of its lines
  std::string label = {};  ///< who asks, for the listings of the semaphores
  Deadline deadline = {};  ///< of the whole wait; what is free is had even if it has passed
};

/// Permits of several semaphores; gives them back when destroyed. Move-only.
class [[nodiscard]] PermitSet {
 public:
  PermitSet() noexcept = default;  ///< holds nothing
  PermitSet(PermitSet&&) noexcept = default;
  PermitSet& operator=(PermitSet&&) noexcept = default;
  ~PermitSet() = default;

  [[nodiscard]] bool empty() const noexcept { return held_.empty(); }
  /// What it holds of one semaphore.
  [[nodiscard]] std::uint32_t units(const Semaphore& semaphore) const noexcept;
  /// Gives everything back now.
  void release() noexcept { held_.clear(); }

  /// Gives every place back, sleeps, and takes them again, all or nothing, where it stood: at each limit it goes before
  /// everybody of its priority who asked for that limit after this set first did. Among several that come back, who
  /// asked first goes first. So that newcomers get on while many come back, they are passed over no more often than
  /// lower priorities are (`passed_over_max`). `timed_out` at once if the sleep would outlast `deadline`; fails like
  /// `LimitSet::acquire` otherwise. After a failure or a cancel the set is empty.
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
  /// A limit that is named twice is asked for with the sum of the units. An empty set is had at once.
  LimitSet(std::initializer_list<Limit> limits) : LimitSet(std::vector<Limit>(limits)) {}
  explicit LimitSet(std::vector<Limit> limits);

  /// Waits for all → Result<PermitSet>. Fails at once, before anything is taken, with `invalid` if one of them can
  /// never be had and with `closed` if one is closed.
  [[nodiscard]] Task<Result<PermitSet>> acquire(LimitSetOptions options = LimitSetOptions()) const;
  /// All or nothing, now; never barges.
  [[nodiscard]] std::optional<PermitSet> try_acquire(LimitSetOptions options = LimitSetOptions()) const;
  /// In the order in which they are taken.
  [[nodiscard]] std::span<const Limit> limits() const noexcept { return limits_; }

 private:
  [[nodiscard]] Result<> check(const LimitSetOptions& options) const;
  std::vector<Limit> limits_;
};

}  // namespace stint
