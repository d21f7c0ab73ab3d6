/// A hierarchical timer wheel: arm and disarm in O(1); a timer moves down at most five levels before it fires.
#pragma once

#include "stint/detail/intrusive_list.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace stint {

/// Fires once, on its executor's thread, never early. Destroying it disarms it.
class Timer : public detail::Link<Timer> {
 public:
  virtual void fire() noexcept = 0;

 protected:
  Timer() = default;
  ~Timer() = default;

 private:
  friend class TimerWheel;
  std::uint64_t tick_ = 0;
};

class TimerWheel {
 public:
  using Tick = std::uint64_t;

  void arm(Timer& timer, Tick tick) noexcept;
  void advance(Tick now) noexcept;  // fires every timer that is due
  /// When the next timer is due: never later than that, and seldom earlier, as for one that was disarmed or where more
  /// than kLookMost share a slot. Slots are not worth waking for: they move down when a timer is due.
  std::optional<Tick> next_tick() noexcept;
  static constexpr int kLookMost = 64;  // timers of one slot; looked at again only when what they said is past

 private:
  static constexpr int kLevels = 6;
  static constexpr int kBits = 6;
  static constexpr Tick kSlots = Tick{1} << kBits;  // one bit per slot in a 64-bit word
  // One slot less than a turn of the highest level (about two years): the present slot is never the farthest one.
  static constexpr Tick kMaxAhead = (kSlots - 1) << ((kLevels - 1) * kBits);
  struct Position {
    int level;
    Tick slot;
    Tick tick;
  };
  std::optional<Position> next_position() noexcept;
  Tick earliest_in(const Position& position) const noexcept;
  void place(Timer& timer) noexcept;

  Tick elapsed_ = 0;
  Tick none_before_ = 0;  // no timer is due earlier; says nothing once it is past
  // A clear bit means an empty slot. A set bit may be stale: disarming is only unlinking, and the next look cleans up.
  std::array<std::uint64_t, kLevels> occupied_{};
  std::array<std::array<detail::List<Timer>, kSlots>, kLevels> slots_;
};

}  // namespace stint
