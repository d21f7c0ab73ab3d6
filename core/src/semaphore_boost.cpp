// How a waiter goes before its line without leaving it: the semaphore's side of priority inheritance.
#include "stint/semaphore.hpp"

namespace stint {

/// The line before which it goes, or in which it stands.
std::size_t Semaphore::rank_of(const Acquire& waiter) const noexcept {
  for (auto* link = boosts_.first(); link != boosts_.end(); link = link->next()) {
    const auto& boost = static_cast<const Boost&>(*link);
    if (boost.waiter == &waiter) return boost.line;
  }
  return line_of(waiter);
}

/// The head, if `line` is next but for the boosts. A line that has been passed over often enough is not passed over for
/// them either.
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
  if (boost.waiter->state_ != State::waiting) return;  // decided, and the boost went with its place
  boost.unlink();
  if (priority) {
    boost.line = static_cast<std::size_t>(2 * (*priority - kPriorityMin) + 1);
    auto* before = boosts_.first();
    while (before != boosts_.end() && static_cast<Boost&>(*before).line >= boost.line) before = before->next();
    before->insert_before(boost);
  }
  note_boosts();
  settle(lock, wakes);  // there may be a new head, and it may fit
}

}  // namespace stint
