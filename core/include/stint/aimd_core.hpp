/// A self-adjusting concurrency limit (AIMD) as a pure core: additive increase while calls succeed, multiplicative
/// decrease when the upstream reports overload (429, 529, a queue timeout). Latency is not used: for calls that take
/// seconds to minutes, in proportion to their output, it says nothing about load.
///
/// The limit grows by one at most once per `growth_interval` (providers penalise steep ramps), and only if at least
/// half of it was in use, since an idle limit proves nothing. After a decrease, samples that began before it are
/// ignored: they reflect the old limit, and many at once would collapse it. Cancelled work is not a sample. Not
/// thread-safe.
#pragma once

#include "stint/time.hpp"

#include <cstdint>

namespace stint {

enum class LoadSignal : std::uint8_t {
  success,   ///< executed, whatever the response was
  overload,  ///< refused because of overload
  ignored,   ///< cancelled, dropped, or failed for unrelated reasons
};

struct AimdPolicy {
  std::uint32_t min = 1;  ///< 0 counts as 1: with no calls admitted, recovery could never be detected
  std::uint32_t max = 200;
  std::uint32_t initial = 20;
  double decrease = 0.7;  ///< factor applied to the limit after an overload: 0.1 … 0.95
  Duration growth_interval = std::chrono::seconds(1);
};

class AimdCore {
 public:
  /// One started call. Belongs to the limit it started under.
  struct Sample {
    std::uint64_t epoch = 0;
  };

  /// Values are clamped: 1 ≤ min ≤ initial ≤ max.
  explicit AimdCore(const AimdPolicy& policy) noexcept;

  [[nodiscard]] Sample begin() noexcept;
  /// Each sample ends once. Returns true if the limit changed.
  bool end(Sample sample, LoadSignal signal, TimePoint now) noexcept;

  [[nodiscard]] std::uint32_t limit() const noexcept { return limit_; }
  [[nodiscard]] std::uint32_t inflight() const noexcept { return inflight_; }

 private:
  bool grow(std::uint32_t inflight, TimePoint now) noexcept;
  bool shrink(TimePoint now) noexcept;

  AimdPolicy policy_;
  std::uint32_t limit_;
  std::uint32_t inflight_ = 0;
  std::uint64_t epoch_ = 0;
  TimePoint next_growth_ = TimePoint::min();
};

}  // namespace stint
