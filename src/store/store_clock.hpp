/// The time of a store on one machine, which a jump of the wall clock does not move (docs/decisions/0020). Two clocks:
/// `now` follows real time, also while the machine sleeps; `awake` stands still then, and is what budgets are counted
/// by. Both begin as the wall time of the store's first day. All processes of a boot compute the same from an anchor
/// that the store keeps; after a reboot `now` goes on by the wall's advance, never back, and `awake` from where it was.
#pragma once

#include "domain/system.hpp"

#include <optional>

namespace stint::store {

/// What budgets are counted by.
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
  /// Moments of the store, each with what the clocks of a boot showed then.
  struct Anchor {
    std::string boot;
    std::chrono::milliseconds elapsed{}, awake{};  ///< of the boot's clocks
    WallTime now{};
    AwakeTime awake_now{};

    friend bool operator==(const Anchor&, const Anchor&) = default;
  };
  /// When the store was looked at last, for the next boot.
  struct Seen {
    WallTime wall{}, now{};
    AwakeTime awake_now{};
  };
  static constexpr Duration kSeenEvery = std::chrono::seconds(10);
  static constexpr Duration kJump = std::chrono::seconds(1);  // less is drift: what is shown to people does not move

  /// Anchored at its first use, as of a store that is new.
  explicit StoreClock(const domain::System& system) : system_(&system) {}
  /// Of a store that was there before. Without an anchor, or with one of another boot, it makes a new one: anchor().
  StoreClock(const domain::System& system, std::optional<Anchor> kept, std::optional<Seen> seen);

  [[nodiscard]] const Anchor& anchor() const;
  [[nodiscard]] WallTime now() const {
    const Anchor& from = anchor();
    return from.now + (std::chrono::floor<std::chrono::milliseconds>(system_->elapsed_now()) - from.elapsed);
  }
  [[nodiscard]] AwakeTime awake() const;
  [[nodiscard]] WallTime wall() const { return system_->wall_now(); }
  /// For the beats of nodes on the same machine, which sleep when it does.
  [[nodiscard]] WallTime beat_time() const { return WallTime(awake().time_since_epoch()); }
  /// A moment of the store as people see it, by the wall clock as it stands now; and back.
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

  /// With the wall as people see it, so that all processes show a moment alike.
  [[nodiscard]] Seen look() const;
  /// Whether a look is due to be kept: the last one is old, or the wall clock has jumped since.
  [[nodiscard]] bool is_stale(const Seen& seen) const;

 private:
  /// The wall's lead over the store's time. Moves only by jumps.
  [[nodiscard]] std::chrono::milliseconds ahead() const;

  const domain::System* system_;
  mutable std::optional<Anchor> anchor_;
  mutable std::optional<std::chrono::milliseconds> ahead_;
};

}  // namespace stint::store
