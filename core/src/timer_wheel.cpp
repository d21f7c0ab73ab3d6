#include "stint/detail/timer_wheel.hpp"

#include <algorithm>
#include <bit>

namespace stint {

void TimerWheel::arm(Timer& timer, Tick tick) noexcept {
  timer.unlink();
  timer.tick_ = std::max(tick, elapsed_ + 1);
  none_before_ = std::min(none_before_, timer.tick_);
  place(timer);
}

void TimerWheel::place(Timer& timer) noexcept {
  // The level is the highest digit in which the tick differs from the current one, so that lower levels come first. A
  // timer beyond the wheel's range waits in its last slot and is placed again from there.
  const Tick tick = std::min(timer.tick_, elapsed_ + kMaxAhead);
  const Tick differs = (tick ^ elapsed_) | (kSlots - 1);
  const int level = std::min((63 - std::countl_zero(differs)) / kBits, kLevels - 1);
  const Tick slot = (tick >> (level * kBits)) % kSlots;
  slots_[static_cast<std::size_t>(level)][slot].push_back(timer);
  occupied_[static_cast<std::size_t>(level)] |= Tick{1} << slot;
}

std::optional<TimerWheel::Position> TimerWheel::next_position() noexcept {
  for (int level = 0; level < kLevels; ++level) {
    const auto row = static_cast<std::size_t>(level);
    const int shift = level * kBits;
    const Tick here = (elapsed_ >> shift) % kSlots;
    while (occupied_[row] != 0) {
      const auto ahead = static_cast<Tick>(std::countr_zero(std::rotr(occupied_[row], static_cast<int>(here))));
      const Tick slot = (here + ahead) % kSlots;
      if (!slots_[row][slot].empty()) return Position{level, slot, ((elapsed_ >> shift) + ahead) << shift};
      occupied_[row] &= ~(Tick{1} << slot);
    }
  }
  return std::nullopt;
}

TimerWheel::Tick TimerWheel::earliest_in(const Position& position) const noexcept {
  const auto& slot = slots_[static_cast<std::size_t>(position.level)][position.slot];
  // A timer beyond the wheel's range counts as due at the slot's end, where it is placed again.
  Tick earliest = position.tick + (Tick{1} << (position.level * kBits)) - 1;
  int looks = 0;
  for (const detail::Link<Timer>* link = slot.first(); link != slot.end(); link = link->next()) {
    if (++looks > kLookMost) return position.tick;
    earliest = std::min(earliest, static_cast<const Timer&>(*link).tick_);
  }
  return earliest;
}

std::optional<TimerWheel::Tick> TimerWheel::next_tick() noexcept {
  const auto position = next_position();
  if (!position) return std::nullopt;
  if (position->level == 0) return position->tick;
  if (none_before_ <= elapsed_) none_before_ = earliest_in(*position);
  return std::max(none_before_, position->tick);
}

void TimerWheel::advance(Tick now) noexcept {
  for (auto next = next_position(); next && next->tick <= now; next = next_position()) {
    elapsed_ = std::max(elapsed_, next->tick);
    const auto row = static_cast<std::size_t>(next->level);
    occupied_[row] &= ~(Tick{1} << next->slot);
    auto& slot = slots_[row][next->slot];
    while (!slot.empty()) {
      Timer& timer = slot.front();
      timer.unlink();
      if (timer.tick_ <= elapsed_) {
        timer.fire();
      } else {
        place(timer);
      }
    }
  }
  elapsed_ = std::max(elapsed_, now);
}

}  // namespace stint
