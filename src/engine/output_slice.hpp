/// A slice of a run's output, by byte offset: the answer of `/output?from=` and the content of an output stream. A
/// reader continues from `next`. Pure.
#pragma once

#include "store/store.hpp"

#include <cstdint>
#include <string>

namespace stint::engine {

struct OutputSlice {
  std::uint64_t offset = 0;  ///< of the first byte of `text`; later than requested if the bytes between are not kept
  std::string text;          ///< empty: nothing more was printed so far
  std::uint64_t next = 0;    ///< where the next slice begins
  std::uint64_t bytes = 0;   ///< printed so far
};

/// From `from` to the next gap in the kept output, or its end. `ended`: the run prints no more; otherwise an incomplete
/// UTF-8 character at the end is left for the next slice.
[[nodiscard]] OutputSlice slice_output(const store::Output& output, std::uint64_t from, bool ended);

/// Removes an incomplete UTF-8 character at the end.
void drop_unfinished(std::string& text) noexcept;

}  // namespace stint::engine
