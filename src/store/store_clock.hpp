/// The clock of a store on one machine, which ignores jumps of the wall clock (docs/decisions/0020). It has two
/// parts: `now` follows real time, also while the machine sleeps; `awake` stops during sleep and measures budgets.
/// Both start as the wall time at which the store was created. All processes of a boot compute the same from an
/// anchor in the store. After a reboot `now` advances by as much as the wall clock did, never backwards, and `awake`
/// continues from its last value.
#pragma once

#include "domain/system.hpp"

#include <optional>

namespace stint::store {

/// The clock that measures budgets.
struct AwakeClock {
  using rep = std::int64_t;
  using period = std::milli;
  using duration = std::chrono::milliseconds;
  using time_point = std::chrono::time_point<AwakeClock>;
  static constexpr bool is_steady = true;
};
using AwakeTime = AwakeClock::time_point;

class StoreClock {
 public:
  /// Moments of the store, each with the clock readings of the boot at that moment.
  struct Anchor {
    std::string boot;
    std::chrono::milliseconds elapsed{}, awake{};  ///< of the boot's clocks
    WallTime now{};
    AwakeTime awake_now{};

    friend bool operator==(const Anchor&, const Anchor&) = default;
  };
  /// The last recorded reading of the clocks, for the next boot.
  struct Seen {
    WallTime wall{}, now{};
    AwakeTime awake_now{};
  };
  static constexpr Duration kSeenEvery = std::chrono::seconds(9);  // less than a step of samples, which write it, too
  static constexpr Duration kJump = std::chrono::seconds(1);  // less is drift and does not move the displayed times

  /// For a new store: anchored at its first use.
  explicit StoreClock(const domain::System& system) : system_(&system) {}
  /// For an existing store. Without an anchor, or with one of another boot, it makes a new one: anchor().
  StoreClock(const domain::System& system, std::optional<Anchor> kept, std::optional<Seen> seen);

  [[nodiscard]] const Anchor& anchor() const;
  [[nodiscard]] WallTime now() const {
    const Anchor& from = anchor();
    return from.now + (std::chrono::floor<std::chrono::milliseconds>(system_->elapsed_now()) - from.elapsed);
  }
  [[nodiscard]] AwakeTime awake() const;
  [[nodiscard]] WallTime wall() const { return system_->wall_now(); }
  /// For heartbeats of nodes on the same machine, which sleep when it does.
  [[nodiscard]] WallTime beat_time() const { return WallTime(awake().time_since_epoch()); }
  /// Converts a moment of the store to wall time for display, by the wall clock as it is now; and back.
  [[nodiscard]] WallTime shown(WallTime time) const { return time + ahead(); }
  [[nodiscard]] WallTime kept(WallTime wall) const { return wall - ahead(); }
  template <class Time>
  [[nodiscard]] std::optional<Time> shown(std::optional<Time> time) const {
    return time ? std::optional(shown(*time)) : std::nullopt;
  }
  template <class Time>
  [[nodiscard]] std::optional<Time> kept(std::optional<Time> wall) const {
    return wall ? std::optional(kept(*wall)) : std::nullopt;
  }

  /// With the displayed wall time, so that all processes display a moment alike.
  [[nodiscard]] Seen look() const;
  /// Whether to record a new reading: the last one is old, or the wall clock has jumped since.
  [[nodiscard]] bool is_stale(const Seen& seen) const;

 private:
  /// How far the wall clock is ahead of the store's time. Changes only by jumps.
  [[nodiscard]] std::chrono::milliseconds ahead() const;

  const domain::System* system_;
  mutable std::optional<Anchor> anchor_;
  mutable std::optional<std::chrono::milliseconds> ahead_;
};

}  // namespace stint::store
