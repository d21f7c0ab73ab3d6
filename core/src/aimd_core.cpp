#include "stint/aimd_core.hpp"

#include "stint/assert.hpp"
#include "stint/deadline.hpp"

#include <algorithm>
#include <utility>

namespace stint {

AimdCore::AimdCore(const AimdPolicy& policy) noexcept : policy_(policy) {
  policy_.min = std::max(policy.min, 1U);
  policy_.max = std::max(policy.max, policy_.min);
  policy_.decrease = policy.decrease > 0.1 ? std::min(policy.decrease, 0.95) : 0.1;  // also NaN
  limit_ = std::clamp(policy.initial, policy_.min, policy_.max);
}

AimdCore::Sample AimdCore::begin() noexcept {
  ++inflight_;
  return {.epoch = epoch_};
}

bool AimdCore::end(Sample sample, LoadSignal signal, TimePoint now) noexcept {
  STINT_ASSERT(inflight_ > 0 && "a sample must end only once");
  const std::uint32_t inflight = inflight_--;
  if (signal == LoadSignal::ignored || sample.epoch != epoch_) return false;
  return signal == LoadSignal::overload ? shrink(now) : grow(inflight, now);
}

bool AimdCore::grow(std::uint32_t inflight, TimePoint now) noexcept {
  if (limit_ >= policy_.max || now < next_growth_ || std::uint64_t{inflight} * 2 < limit_) return false;
  ++limit_;
  next_growth_ = Deadline::after(now, policy_.growth_interval).when();
  return true;
}

bool AimdCore::shrink(TimePoint now) noexcept {
  ++epoch_;
  next_growth_ = Deadline::after(now, policy_.growth_interval).when();
  const auto share = static_cast<std::uint32_t>(static_cast<double>(limit_) * policy_.decrease);
  const std::uint32_t less = std::max(share, policy_.min);
  return std::exchange(limit_, less) != less;
}

}  // namespace stint
