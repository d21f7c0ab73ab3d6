/// `AdaptiveLimit`: lets a semaphore's capacity follow what the other side can bear; see `stint/aimd_core.hpp` for the
/// rule.
///
/// Permits are had through it, in the semaphore's order, and each says at its end how the work went. It owns the
/// semaphore's capacity: who resizes by hand is overruled by the next change. Thread-safe. Must outlive its permits,
/// and the semaphore must outlive it.
#pragma once

#include "stint/aimd_core.hpp"
#include "stint/semaphore.hpp"

#include <mutex>

namespace stint {

class AdaptivePermit;

class AdaptiveLimit {
 public:
  AdaptiveLimit(Semaphore& semaphore, const AimdPolicy& policy);
  ~AdaptiveLimit();  // asserts: nothing is held
  AdaptiveLimit(const AdaptiveLimit&) = delete;
  AdaptiveLimit& operator=(const AdaptiveLimit&) = delete;

  /// Waits for one permit; fails as `Semaphore::acquire` does. A cancelled wait is no sample.
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

/// A permit that says how the work went. Destroyed without that, as by a cancel, it says nothing.
class [[nodiscard]] AdaptivePermit {
 public:
  AdaptivePermit(AdaptivePermit&& other) noexcept
      : limit_(std::exchange(other.limit_, nullptr)), sample_(other.sample_), permit_(std::move(other.permit_)) {}
  AdaptivePermit& operator=(AdaptivePermit&& other) noexcept;
  ~AdaptivePermit() { end(LoadSignal::ignored, TimePoint()); }

  /// Adjusts the limit and then gives the permit back. The second call does nothing.
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
