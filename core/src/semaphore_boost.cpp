// The semaphore's part of priority inheritance: lets a waiter go ahead of its line without leaving its place.
#include "stint/semaphore.hpp"

namespace stint {

/// The line that the waiter goes ahead of, or the one it is in.
std::size_t Semaphore::rank_of(const Acquire& waiter) const noexcept {
  for (auto* link = boosts_.first(); link != boosts_.end(); link = link->next()) {
    const auto& boost = static_cast<const Boost&>(*link);
    if (boost.waiter == &waiter) return boost.line;
  }
  return line_of(waiter);
}

/// The head, given that `line` would be next without boosts. A line that was passed over too often is not passed over
/// for a boost either.
Acquire* Semaphore::boosted_head(std::size_t line) const noexcept {
  const Boost& highest = boosts_.front();
  const bool first = highest.line >= line && passed_over_[line] < passed_over_max_;
  return first ? highest.waiter : &lines_[line].front();
}

void Semaphore::drop_boost(const Acquire& waiter) noexcept {
  boosts_.for_each([&waiter](Boost& boost) {
    if (boost.waiter == &waiter) boost.unlink();
  });
  note_boosts();
}

void Semaphore::set_boost(Boost& boost, std::optional<int> priority, Wakes& wakes) noexcept {
  Lock lock(mutex_);
  if (boost.waiter->state_ != State::waiting) return;  // decided; its boost was removed with it
  boost.unlink();
  if (priority) {
    boost.line = static_cast<std::size_t>(2 * (*priority - kPriorityMin) + 1);
    auto* before = boosts_.first();
    while (before != boosts_.end() && static_cast<Boost&>(*before).line >= boost.line) before = before->next();
    before->insert_before(boost);
  }
  note_boosts();
  settle(lock, wakes);  // a new head may fit
}

}  // namespace stint
