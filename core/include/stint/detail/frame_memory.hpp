/// Memory of coroutine frames. A frame lives briefly and the next of its size is wanted soon; general allocators are at
/// their slowest with the sizes that frames have. So each thread keeps some of what it frees, up to a bound.
#pragma once

#include <cstddef>

namespace stint::detail {

/// A frame may be freed on another thread than the one that made it.
[[nodiscard]] void* allocate_frame(std::size_t size);
void free_frame(void* frame, std::size_t size) noexcept;

/// What this thread keeps, in bytes; never more than the bound.
[[nodiscard]] std::size_t frame_memory_kept() noexcept;
inline constexpr std::size_t kFrameMemoryKeptMax = 2 << 20;

}  // namespace stint::detail
