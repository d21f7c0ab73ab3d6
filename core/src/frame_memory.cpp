#include "stint/detail/frame_memory.hpp"

#include <array>
#include <new>
#include <utility>

namespace stint::detail {
namespace {

// Sanitizers must see every allocation and free.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kKeeps = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kKeeps = false;
#else
constexpr bool kKeeps = true;
#endif
#else
constexpr bool kKeeps = true;
#endif

// Rounds like the C library: the requested size plus one header word, in steps.
constexpr std::size_t kStep = 16, kWord = 8, kLargest = 8 << 10;

struct Free {
  Free* next;
};
struct Kept {
  std::array<Free*, (kLargest + kWord) / kStep + 2> by_size;  // in steps
  std::size_t room;                                           // bytes that may still be kept
  bool open, closed;                                          // the thread-exit hook is installed; the thread has ended
};
// Trivially destructible: destructors of other thread-local variables may still free frames.
constinit thread_local Kept kept{};

struct Closer {
  ~Closer() {
    kept.closed = true;
    kept.room = 0;
    for (Free*& list : kept.by_size) {
      while (list != nullptr) ::operator delete(std::exchange(list, list->next));
    }
  }
};
/// Returns false if the thread is ending.
bool open_lists() {
  if (kept.open || kept.closed) return false;
  static thread_local const Closer closer;
  kept.open = true;
  kept.room = kFrameMemoryKeptMax;
  return true;
}

constexpr std::size_t steps(std::size_t size) noexcept { return (size + kWord + kStep - 1) / kStep; }
constexpr std::size_t bytes_of(std::size_t count) noexcept { return count * kStep - kWord; }

/// A kept block of at least `size` bytes; null if there is none.
void* take_kept(std::size_t size) noexcept {
  if (!kKeeps || size > kLargest) return nullptr;
  const std::size_t count = steps(size);
  Free*& list = kept.by_size[count];
  if (list == nullptr) return nullptr;
  kept.room += bytes_of(count);
  return std::exchange(list, list->next);
}

/// False: the caller frees the block.
bool keep(void* block, std::size_t size) noexcept {
  if (!kKeeps || size > kLargest) return false;
  const std::size_t count = steps(size);
  if (kept.room < bytes_of(count) && !open_lists()) return false;
  Free*& list = kept.by_size[count];
  list = new (block) Free{list};
  kept.room -= bytes_of(count);
  return true;
}

/// The size to allocate, so that the block can be kept as one of that size.
std::size_t kept_size(std::size_t size) noexcept { return kKeeps && size <= kLargest ? bytes_of(steps(size)) : size; }

}  // namespace

void* allocate_frame(std::size_t size) {
  void* const known = take_kept(size);
  return known != nullptr ? known : ::operator new(kept_size(size));
}

void free_frame(void* frame, std::size_t size) noexcept {
  if (!keep(frame, size)) ::operator delete(frame);
}

std::size_t frame_memory_kept() noexcept { return kept.open && !kept.closed ? kFrameMemoryKeptMax - kept.room : 0; }

}  // namespace stint::detail
