/// The usage of an attempt, in counters that do not overlap: each token is in exactly one of the four. Providers count
/// differently (some include cached tokens in the input, some don't); the dialects convert their numbers.
#pragma once

#include <cstdint>

namespace stint {

struct Usage {
  std::int64_t fresh_in = 0;  ///< input tokens that were not cached
  std::int64_t cache_read = 0;
  std::int64_t cache_write = 0;
  std::int64_t out = 0;
  std::int64_t reasoning = 0;    ///< of `out`
  std::int64_t cost_micros = 0;  ///< millionths; 0 if unknown
  bool estimated = false;        ///< summed up from parts, because no total was reported

  [[nodiscard]] constexpr std::int64_t tokens() const noexcept { return fresh_in + cache_read + cache_write + out; }
  constexpr Usage& operator+=(const Usage& other) noexcept {
    fresh_in += other.fresh_in;
    cache_read += other.cache_read;
    cache_write += other.cache_write;
    out += other.out;
    reasoning += other.reasoning;
    cost_micros += other.cost_micros;
    estimated = estimated || other.estimated;
    return *this;
  }
  friend constexpr bool operator==(const Usage&, const Usage&) = default;
};

}  // namespace stint
