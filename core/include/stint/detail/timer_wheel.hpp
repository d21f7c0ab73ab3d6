/// A hierarchical timer wheel: arm and disarm in O(1); a timer cascades through at most five levels before it fires.
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
  /// A lower bound for the next due timer. Usually exact; earlier only if that timer was disarmed or more than
  /// kLookMost share a slot. Cascading needs no wake-up of its own: slots cascade when a timer is due.
  std::optional<Tick> next_tick() noexcept;
  static constexpr int kLookMost = 64;  // timers examined per slot; examined again only after the bound has passed

 private:
  static constexpr int kLevels = 6;
  static constexpr int kBits = 6;
  static constexpr Tick kSlots = Tick{1} << kBits;  // one bit per slot in a 64-bit word
  // One slot less than a turn of the highest level (about two years), so that the current slot is never the farthest
  // one.
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
  Tick none_before_ = 0;  // no timer is due earlier; meaningless once it is in the past
  // A clear bit means an empty slot. A set bit may be stale: disarming only unlinks, and the next scan clears it.
  std::array<std::uint64_t, kLevels> occupied_{};
  std::array<std::array<detail::List<Timer>, kSlots>, kLevels> slots_;
};

}  // namespace stint
