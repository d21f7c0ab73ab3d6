// The listings of a semaphore, its table of holders, and the permits that it hands out.
#include "stint/semaphore.hpp"

#include <algorithm>
#include <iterator>

namespace stint {

// ---- Listings ------------------------------------------------------------------------------------------------------

std::vector<Semaphore::Waiter> Semaphore::waiters(std::size_t limit) const {
  const Lock lock(mutex_);
  std::vector<Waiter> found;
  for (int line = kLines - 1; line >= 0; --line) {
    const auto& waiters = lines_[static_cast<std::size_t>(line)];
    for (auto* link = waiters.first(); link != waiters.end() && found.size() < limit; link = link->next()) {
      const auto& waiter = static_cast<const Acquire&>(*link);
      Waiter& entry = found.emplace_back();
      entry.units = waiter.units_;
      entry.priority = static_cast<int>(rank_of(waiter) / 2) + kPriorityMin;
      if (waiter.kind_ != Acquire::Kind::labelled) continue;
      const auto& labelled = static_cast<const LabelledAcquire&>(waiter);
      entry.label = labelled.label_;
      entry.since = labelled.since_;
    }
  }
  return found;
}

std::vector<Semaphore::Holder> Semaphore::holders() const {
  const Lock lock(mutex_);
  std::vector<Holder> found;
  std::ranges::copy_if(holders_, std::back_inserter(found), [](const Holder& holder) { return holder.units != 0; });
  return found;
}

std::uint32_t Semaphore::add_holder(const Acquire* waiter, std::string_view label, std::uint32_t units) noexcept {
  if (waiter != nullptr && waiter->kind_ == Acquire::Kind::labelled)
    label = static_cast<const LabelledAcquire&>(*waiter).label_;
  if (free_holders_.empty()) {
    holders_.emplace_back();
    free_holders_.push_back(static_cast<std::uint32_t>(holders_.size()));
  }
  const std::uint32_t holder = free_holders_.back();
  free_holders_.pop_back();
  holders_[holder - 1] = Holder{std::string(label), units, clock_now()};
  return holder;
}

void Semaphore::remove_holder(std::uint32_t holder) noexcept {
  holders_[holder - 1] = Holder{};
  free_holders_.push_back(holder);
}

std::uint32_t Semaphore::split_holder(std::uint32_t holder, std::uint32_t units) noexcept {
  const Lock lock(mutex_);
  const Holder before = holders_[holder - 1];
  const std::uint32_t part = add_holder(nullptr, before.label, units);
  holders_[part - 1].since = before.since;
  holders_[holder - 1].units -= units;
  return part;
}

void Semaphore::merge_holder(std::uint32_t into, std::uint32_t from) noexcept {
  const Lock lock(mutex_);
  holders_[into - 1].units += holders_[from - 1].units;
  remove_holder(from);
}

// ---- Permit --------------------------------------------------------------------------------------------------------

Result<Permit> Permit::split(std::uint32_t units) {
  if (units > units_) {
    return fail(Errc::invalid,
                "a permit of " + std::to_string(units_) + " units can't give up " + std::to_string(units));
  }
  if (units == 0) return Permit();
  if (units == units_) return std::move(*this);
  const std::uint32_t holder = holder_ != 0 ? semaphore_->split_holder(holder_, units) : 0;
  units_ -= units;
  return Permit(*semaphore_, units, holder);
}

Result<> Permit::release(std::uint32_t units) {
  STINT_TRY(const Permit part, split(units));
  return {};
}

Result<> Permit::merge(Permit&& other) {
  if (!other || &other == this) return {};
  if (semaphore_ == nullptr) {
    *this = std::move(other);
    return {};
  }
  if (semaphore_ != other.semaphore_) {
    return fail(Errc::invalid,
                "permits of '" + semaphore_->name() + "' and '" + other.semaphore_->name() + "' can't be merged");
  }
  if (holder_ != 0) semaphore_->merge_holder(holder_, other.holder_);
  units_ += std::exchange(other.units_, 0);
  other.semaphore_ = nullptr;
  return {};
}

void Permit::forget() noexcept {
  if (Semaphore* const semaphore = std::exchange(semaphore_, nullptr)) {
    semaphore->forget(std::exchange(units_, 0), holder_);
  }
}

std::uint32_t Permit::detach() noexcept {
  if (semaphore_ == nullptr) return 0;
  if (holder_ != 0) {
    const std::lock_guard lock(semaphore_->mutex_);
    semaphore_->remove_holder(holder_);
  }
  std::exchange(semaphore_, nullptr)->detached_.fetch_add(units_, std::memory_order_relaxed);
  return std::exchange(units_, 0);
}

}  // namespace stint
