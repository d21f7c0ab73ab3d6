/// Memory of coroutine frames. A frame lives briefly and the next of its size is wanted soon; general allocators are at
/// their slowest with the sizes that frames have. So each thread keeps some of what it frees, up to a bound.
#pragma once

#include "stint/detail/compiler.hpp"

#include <cstddef>

namespace stint::detail {

/// A frame may be freed on another thread than the one that made it.
[[nodiscard]] void* allocate_frame(std::size_t size);
void free_frame(void* frame, std::size_t size) noexcept;

/// The same lists, for a program that has all its blocks come from there. `take_kept`: at least so large; null: there
/// is none. `keep`: one of at least so many bytes that `::operator delete` would take; false: it is for the caller to
/// free.
[[nodiscard]] void* take_kept(std::size_t size) noexcept;
[[nodiscard]] bool keep(void* block, std::size_t size) noexcept;
/// What to ask for instead, so that the block can be kept as one of that size.
[[nodiscard]] std::size_t kept_size(std::size_t size) noexcept;

/// What this thread keeps, in bytes; never more than the bound.
[[nodiscard]] std::size_t frame_memory_kept() noexcept;
inline constexpr std::size_t kFrameMemoryKeptMax = 2 << 20;

}  // namespace stint::detail
