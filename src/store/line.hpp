/// Things by their numbers, which rise as they come: one after the other in a line, where a map would have a node and a
/// way to it for each.
///
/// What is taken out leaves a gap, as it may be anywhere. Gaps at the front go at once, the others when they are more
/// than half: so a line is never more than twice as long as what is in it. Adding, finding and taking out cost the same
/// however long it is, but for the sweep, which is paid by those that were taken out, and for finding an old one before
/// what was swept, which is a binary search. What is in it may be moved: who wants to point at things keeps pointers.
#pragma once

#include "stint/assert.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <ranges>

namespace stint::store {

template <class T>
class Line {
 public:
  using Number = std::int64_t;
  struct Slot {
    Number number = 0;
    std::optional<T> thing;  ///< none: a gap

    [[nodiscard]] bool is_there() const noexcept { return thing.has_value(); }
  };

  /// Its number is higher than all before.
  T& add(Number number, T thing) {
    STINT_ASSERT(slots_.empty() || number > slots_.back().number);
    return *slots_.emplace_back(number, std::move(thing)).thing;
  }
  /// Null: it is not there.
  [[nodiscard]] T* find(Number number) noexcept {
    Slot* const slot = slot_of(number);
    return slot != nullptr && slot->thing ? &*slot->thing : nullptr;
  }
  [[nodiscard]] const T* find(Number number) const noexcept { return const_cast<Line*>(this)->find(number); }
  /// One that is there.
  void erase(Number number) {
    Slot* const slot = slot_of(number);
    STINT_ASSERT(slot != nullptr && slot->thing);
    slot->thing.reset();
    ++gaps_;
    for (; !slots_.empty() && !slots_.front().thing; --gaps_) slots_.pop_front();
    if (gaps_ * 2 <= slots_.size()) return;
    std::erase_if(slots_, [](const Slot& each) { return !each.thing; });
    gaps_ = 0;
  }
  [[nodiscard]] std::size_t size() const noexcept { return slots_.size() - gaps_; }

  /// Those with a higher number, in their order.
  [[nodiscard]] auto after(Number number) const {
    const auto first = std::ranges::upper_bound(slots_, number, {}, &Slot::number);
    return std::ranges::subrange(first, slots_.end()) | std::views::filter(&Slot::is_there);
  }
  /// Those with a lower number, the last one first.
  [[nodiscard]] auto before(Number number) const {
    const auto end = std::ranges::lower_bound(slots_, number, {}, &Slot::number);
    return std::ranges::subrange(slots_.begin(), end) | std::views::reverse | std::views::filter(&Slot::is_there);
  }

 private:
  /// If nothing was swept behind it, it is as far from the last as its number; else it is nearer.
  [[nodiscard]] Slot* slot_of(Number number) noexcept {
    if (slots_.empty() || number < slots_.front().number || number > slots_.back().number) return nullptr;
    const auto far = slots_.end() - 1 - std::min(slots_.back().number - number, std::ssize(slots_) - 1);
    if (far->number == number) return &*far;
    const auto found = std::ranges::lower_bound(far, slots_.end(), number, {}, &Slot::number);
    return found->number == number ? &*found : nullptr;
  }

  std::deque<Slot> slots_;  // by number
  std::size_t gaps_ = 0;    // of these
};

}  // namespace stint::store
