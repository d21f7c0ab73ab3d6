#include "stint/adaptive.hpp"

#include <utility>

namespace stint {

AdaptiveLimit::AdaptiveLimit(Semaphore& semaphore, const AimdPolicy& policy) : semaphore_(semaphore), core_(policy) {
  (void)semaphore_.set_capacity(core_.limit());  // in range: a limit has 32 bits
}

AdaptiveLimit::~AdaptiveLimit() { STINT_ASSERT(inflight() == 0 && "a permit of this limit is still held"); }

Task<Result<AdaptivePermit>> AdaptiveLimit::acquire() {
  STINT_CO_TRY(Permit permit, co_await semaphore_.acquire());
  co_return AdaptivePermit(*this, std::move(permit));
}

std::uint32_t AdaptiveLimit::limit() const noexcept {
  const std::lock_guard lock(mutex_);
  return core_.limit();
}

std::uint32_t AdaptiveLimit::inflight() const noexcept {
  const std::lock_guard lock(mutex_);
  return core_.inflight();
}

AimdCore::Sample AdaptiveLimit::begin() noexcept {
  const std::lock_guard lock(mutex_);
  return core_.begin();
}

void AdaptiveLimit::end(AimdCore::Sample sample, LoadSignal signal, TimePoint now) noexcept {
  // The capacity is set under the lock, so that the later of two changes wins. The semaphore never calls back.
  const std::lock_guard lock(mutex_);
  if (core_.end(sample, signal, now)) (void)semaphore_.set_capacity(core_.limit());
}

AdaptivePermit& AdaptivePermit::operator=(AdaptivePermit&& other) noexcept {
  AdaptivePermit old(std::move(*this));
  limit_ = std::exchange(other.limit_, nullptr);
  sample_ = other.sample_;
  permit_ = std::move(other.permit_);
  return *this;
}

void AdaptivePermit::end(LoadSignal signal, TimePoint now) noexcept {
  if (limit_ == nullptr) return;
  // The limit first: a permit returned before a decrease would be granted again under the old capacity.
  std::exchange(limit_, nullptr)->end(sample_, signal, now);
  permit_.release();
}

}  // namespace stint
