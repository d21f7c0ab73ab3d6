/// `AdaptiveLimit`: adjusts a semaphore's capacity to what the upstream can bear; see `stint/aimd_core.hpp` for the
/// rule.
///
/// Permits are acquired through it, in the semaphore's order, and each reports at its end how the work went. It owns
/// the semaphore's capacity: a manual resize is overwritten by the next adjustment. Thread-safe. Must outlive its
/// permits, and the semaphore must outlive it.
#pragma once

#include "stint/aimd_core.hpp"
#include "stint/semaphore.hpp"

#include <mutex>

namespace stint {

class AdaptivePermit;

class AdaptiveLimit {
 public:
  AdaptiveLimit(Semaphore& semaphore, const AimdPolicy& policy);
  ~AdaptiveLimit();  // asserts that no permit is held
  AdaptiveLimit(const AdaptiveLimit&) = delete;
  AdaptiveLimit& operator=(const AdaptiveLimit&) = delete;

  /// Waits for one permit; fails like `Semaphore::acquire`. A cancelled wait is not a sample.
  [[nodiscard]] Task<Result<AdaptivePermit>> acquire();
  [[nodiscard]] std::uint32_t limit() const noexcept;
  [[nodiscard]] std::uint32_t inflight() const noexcept;

 private:
  friend class AdaptivePermit;
  AimdCore::Sample begin() noexcept;
  void end(AimdCore::Sample sample, LoadSignal signal, TimePoint now) noexcept;

  Semaphore& semaphore_;
  mutable std::mutex mutex_;
  AimdCore core_;
};

/// A permit that reports how the work went. Destroyed without a report, as by a cancellation, it counts as `ignored`.
class [[nodiscard]] AdaptivePermit {
 public:
  AdaptivePermit(AdaptivePermit&& other) noexcept
      : limit_(std::exchange(other.limit_, nullptr)), sample_(other.sample_), permit_(std::move(other.permit_)) {}
  AdaptivePermit& operator=(AdaptivePermit&& other) noexcept;
  ~AdaptivePermit() { end(LoadSignal::ignored, TimePoint()); }

  /// Adjusts the limit and then returns the permit. A second call does nothing.
  void end(LoadSignal signal, TimePoint now) noexcept;

 private:
  friend class AdaptiveLimit;
  AdaptivePermit(AdaptiveLimit& limit, Permit permit) noexcept
      : limit_(&limit), sample_(limit.begin()), permit_(std::move(permit)) {}

  AdaptiveLimit* limit_;
  AimdCore::Sample sample_;
  Permit permit_;
};

}  // namespace stint
