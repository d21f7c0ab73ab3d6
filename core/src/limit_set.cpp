#include "stint/limit_set.hpp"

#include <algorithm>

namespace stint {
namespace {

/// The global acquisition order. Names do not depend on addresses, so a replay acquires in the same order.
bool goes_first(const LimitSet::Limit& a, const LimitSet::Limit& b) {
  if (const auto order = a.semaphore->name() <=> b.semaphore->name(); order != 0) return order < 0;
  return std::less<>()(a.semaphore, b.semaphore);
}

AcquireOptions request_for(std::uint32_t units, const LimitSetOptions& options) noexcept {
  AcquireOptions request;
  request.units = units;
  request.priority = options.priority;
  request.label = options.label;
  return request;
}

}  // namespace

LimitSet::LimitSet(std::vector<Limit> limits) : limits_(std::move(limits)) {
  std::ranges::sort(limits_, goes_first);
  std::vector<Limit> merged;
  for (const Limit& limit : limits_) {
    if (merged.empty() || merged.back().semaphore != limit.semaphore) {
      merged.push_back(limit);
    } else {  // saturates
      std::uint32_t& units = merged.back().units;
      units = limit.units > Semaphore::kCapacityMax - units ? Semaphore::kCapacityMax : units + limit.units;
    }
  }
  limits_ = std::move(merged);
}

Result<> LimitSet::check(const LimitSetOptions& options) const {
  if (options.priority < Semaphore::kPriorityMin || options.priority > Semaphore::kPriorityMax) {
    return fail(Errc::invalid, "priority " + std::to_string(options.priority) + " is not within " +
                                   std::to_string(Semaphore::kPriorityMin) + " and " +
                                   std::to_string(Semaphore::kPriorityMax));
  }
  for (const Limit& limit : limits_) {
    const Semaphore& semaphore = *limit.semaphore;
    if (semaphore.closed()) return fail(Errc::closed, "semaphore '" + semaphore.name() + "': closed");
    if (!semaphore.impossible(limit.units)) continue;
    return fail(Errc::invalid, "semaphore '" + semaphore.name() + "': " + std::to_string(limit.units) + " units of " +
                                   std::to_string(semaphore.capacity()) + " can never be granted");
  }
  return {};
}

Task<Result<PermitSet>> LimitSet::acquire(LimitSetOptions options) const {
  STINT_CO_CHECK(check(options));
  PermitSet set;
  set.options_ = std::move(options);
  set.held_.reserve(limits_.size());
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    Semaphore& semaphore = *limits_[i].semaphore;
    const std::uint64_t turn = semaphore.draw_turn();
    STINT_CO_TRY(Permit permit,
                 co_await semaphore.acquire(request_for(limits_[i].units, set.options_), set.options_.deadline));
    set.held_.push_back({&semaphore, turn, std::move(permit)});
  }
  co_return set;
}

std::optional<PermitSet> LimitSet::try_acquire(LimitSetOptions options) const {
  PermitSet set;
  set.options_ = std::move(options);
  set.held_.reserve(limits_.size());
  for (const Limit& limit : limits_) {
    auto permit = limit.semaphore->try_acquire(request_for(limit.units, set.options_));
    if (!permit) return std::nullopt;
    set.held_.push_back({limit.semaphore, limit.semaphore->draw_turn(), std::move(*permit)});
  }
  return set;
}

std::uint32_t PermitSet::units(const Semaphore& semaphore) const noexcept {
  const auto found = std::ranges::find(held_, &semaphore, &Held::semaphore);
  return found == held_.end() ? 0 : found->permit.units();
}

Task<Result<>> PermitSet::back_off(Duration pause, Deadline deadline) {
  struct Place {
    Semaphore* semaphore;
    std::uint32_t units;
    std::uint64_t turn;
  };
  std::vector<Place> places;
  places.reserve(held_.size());
  for (const Held& held : held_) places.push_back({held.semaphore, held.permit.units(), held.turn});
  release();

  const Executor& executor = (co_await current_token()).executor();
  const Deadline end = Deadline::after(executor.now(), pause);
  if (deadline < end) {
    co_return fail(Errc::timed_out, "a back-off of " +
                                        std::to_string(std::chrono::ceil<std::chrono::milliseconds>(pause).count()) +
                                        " ms would outlast the deadline");
  }
  co_await sleep_until(end.when());

  std::vector<Held> again;  // returned with the frame if the rest can't be acquired
  again.reserve(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Place place = places[i];
    STINT_CO_TRY(Permit permit,
                 co_await place.semaphore->acquire_again(request_for(place.units, options_), deadline, place.turn));
    again.push_back({place.semaphore, place.turn, std::move(permit)});
  }
  held_ = std::move(again);
  co_return Result<>();
}

}  // namespace stint
