#include "stint/detail/frame_memory.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace stint::detail {
namespace {

void on_a_fresh_thread(auto body) { std::thread(body).join(); }

TEST(FrameMemory, a_freed_block_is_reused_for_its_size) {
  on_a_fresh_thread([] {
    void* const first = allocate_frame(1500);
    std::memset(first, 1, 1500);
    free_frame(first, 1500);
    if (frame_memory_kept() == 0) GTEST_SKIP() << "nothing is kept under a sanitizer";
    EXPECT_GE(frame_memory_kept(), 1500U);
    void* const other = allocate_frame(1400);
    EXPECT_NE(other, first) << "of another size";
    void* const again = allocate_frame(1499);
    EXPECT_EQ(again, first);
    EXPECT_EQ(frame_memory_kept(), 0U);
    free_frame(again, 1499);
    free_frame(other, 1400);
  });
}

TEST(FrameMemory, no_more_than_the_bound_is_kept) {
  on_a_fresh_thread([] {
    std::vector<void*> frames;
    for (std::size_t i = 0; i < 2 * kFrameMemoryKeptMax / 4096; ++i) frames.push_back(allocate_frame(4096));
    frames.push_back(allocate_frame(1 << 20));
    free_frame(frames.back(), 1 << 20);
    frames.pop_back();
    EXPECT_EQ(frame_memory_kept(), 0U) << "what is large is rare";
    for (void* const frame : frames) free_frame(frame, 4096);
    EXPECT_LE(frame_memory_kept(), kFrameMemoryKeptMax);
  });
}

TEST(FrameMemory, a_frame_may_end_on_another_thread_and_after_its_threads_variables) {
  void* const frame = allocate_frame(256);
  struct Late {
    void* frame = nullptr;
    ~Late() { free_frame(frame, 256); }
  };
  on_a_fresh_thread([frame] {
    thread_local Late late;  // constructed first, so destroyed last
    late.frame = frame;
    free_frame(allocate_frame(64), 64);
  });
}

}  // namespace
}  // namespace stint::detail
