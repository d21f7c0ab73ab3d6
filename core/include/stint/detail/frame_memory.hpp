/// Allocator for coroutine frames. Frames are short-lived and the next one of the same size is needed soon; general
/// allocators are slowest at the sizes frames have. So each thread keeps a bounded amount of freed frames for reuse.
#pragma once

#include "stint/detail/compiler.hpp"

#include <cstddef>

namespace stint::detail {

/// A frame may be freed on another thread than the one that allocated it.
[[nodiscard]] void* allocate_frame(std::size_t size);
void free_frame(void* frame, std::size_t size) noexcept;

/// Bytes that this thread keeps; never more than the bound.
[[nodiscard]] std::size_t frame_memory_kept() noexcept;
inline constexpr std::size_t kFrameMemoryKeptMax = 2 << 20;

}  // namespace stint::detail
