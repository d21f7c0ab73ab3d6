/// A stretch of what a run printed, by byte offset: what `/output?from=` answers and what a stream of output carries. A
/// reader asks again from `next`. Pure.
#pragma once

#include "store/store.hpp"

#include <cstdint>
#include <string>

namespace stint::engine {

struct OutputSlice {
  std::uint64_t offset = 0;  ///< of the first byte of `text`; later than asked for if the bytes between are not kept
  std::string text;          ///< empty: nothing more was printed so far
  std::uint64_t next = 0;    ///< where the next slice begins
  std::uint64_t bytes = 0;   ///< printed so far
};

/// From `from` to the end of what is kept in one piece. `ended`: the run prints no more; else a character of UTF-8
/// whose last bytes are still to come is left for the next slice.
[[nodiscard]] OutputSlice slice_output(const store::Output& output, std::uint64_t from, bool ended);

}  // namespace stint::engine
