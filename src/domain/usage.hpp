/// What an attempt used up, in counters that do not overlap: each token is in exactly one of the four. Providers count
/// differently (some have cached tokens inside the input, some beside it); whoever reads their numbers converts them.
#pragma once

#include <cstdint>

namespace stint {

struct Usage {
  std::int64_t fresh_in = 0;  ///< input tokens that no cache had
  std::int64_t cache_read = 0;
  std::int64_t cache_write = 0;
  std::int64_t out = 0;
  std::int64_t reasoning = 0;    ///< of `out`
  std::int64_t cost_micros = 0;  ///< millionths; 0 if nobody said
  bool estimated = false;        ///< put together from parts, since no total came

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
