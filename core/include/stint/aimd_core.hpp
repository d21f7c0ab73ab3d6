/// A concurrency limit that finds its own level, pure: one more while all is well, a share less when the other side
/// says that it is overloaded (429, 529, a queue that timed out). Latency is not looked at: of calls that take seconds
/// to minutes, in proportion to what they produce, it says nothing about load.
///
/// The limit grows by one at most once per `growth_interval` (providers punish steep ramps), and only if at least half
/// of it was in use: an idle limit proves nothing. After a decrease, samples that began before it count for nothing:
/// they tell of the old limit, and many at once would collapse it. Work that was cancelled is no sample. Not
/// thread-safe.
#pragma once

#include "stint/time.hpp"

#include <cstdint>

namespace stint {

enum class LoadSignal : std::uint8_t {
  success,   ///< carried out, whatever the answer was
  overload,  ///< refused because there was too much of it
  ignored,   ///< cancelled, dropped, or failed for reasons of its own
};

struct AimdPolicy {
  std::uint32_t min = 1;  ///< 0 counts as 1: with nothing let through, nothing could ever show that all is well again
  std::uint32_t max = 200;
  std::uint32_t initial = 20;
  double decrease = 0.7;  ///< what is left of the limit after an overload: 0.1 … 0.95
  Duration growth_interval = std::chrono::seconds(1);
};

class AimdCore {
 public:
  /// Begun work. Belongs to the limit that it began under.
  struct Sample {
    std::uint64_t epoch = 0;
  };

  /// Senseless values are cut: 1 ≤ min ≤ initial ≤ max.
  explicit AimdCore(const AimdPolicy& policy) noexcept;

  [[nodiscard]] Sample begin() noexcept;
  /// Each sample ends once. True if the limit changed.
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
