#include "stint/object_pool.hpp"

namespace stint::detail {

ObjectPoolBase::ObjectPoolBase(std::string name, std::uint32_t max_size, std::size_t max_idle,
                               const SemaphoreOptions& options)
    : semaphore_(std::move(name), std::int64_t{max_size}, options), max_idle_(max_idle) {
  STINT_ASSERT(max_size > 0 && "max_size must be at least 1");
}

ObjectPoolBase::Counts ObjectPoolBase::counts(std::size_t idle) const noexcept {
  Counts counts;
  counts.idle = idle;
  counts.leased = static_cast<std::size_t>(std::int64_t{semaphore_.capacity()} - semaphore_.available());
  counts.waiting = semaphore_.waiting();
  counts.made = made_;
  counts.reused = reused_;
  counts.discarded = discarded_;
  return counts;
}

bool ObjectPoolBase::closed() const noexcept {
  const std::lock_guard lock(mutex_);
  return shut_;
}

Error ObjectPoolBase::closed_error() const { return {Errc::closed, "pool '" + name() + "': closed"}; }

}  // namespace stint::detail
