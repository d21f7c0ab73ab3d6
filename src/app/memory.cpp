// The program's memory: small blocks come from where the frames come from, lists of the thread by size, and go back
// there. A run makes some fifty of them, ten runs at a time, which is more of a size than the C library keeps at hand.
// Decision 0016.
#include "stint/detail/frame_memory.hpp"

#include <cstdlib>
#include <malloc.h>
#include <new>

namespace {

/// How large the block can be said to be, so that it is in steps as the lists have them.
std::size_t size_of(void* block) noexcept {
  constexpr std::size_t kStep = 16, kWord = 8;
  const std::size_t usable = ::malloc_usable_size(block);
  return (usable + kWord) / kStep * kStep - kWord;
}

}  // namespace

void* operator new(std::size_t size) {
  if (void* const known = stint::detail::take_kept(size)) return known;
  while (true) {
    if (void* const fresh = std::malloc(stint::detail::kept_size(size))) return fresh;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}
void* operator new[](std::size_t size) { return operator new(size); }

void operator delete(void* block, std::size_t size) noexcept {
  if (block != nullptr && !stint::detail::keep(block, size)) std::free(block);
}
void operator delete(void* block) noexcept {
  if (block != nullptr) operator delete(block, size_of(block));
}
void operator delete[](void* block) noexcept { operator delete(block); }
void operator delete[](void* block, std::size_t size) noexcept { operator delete(block, size); }
