// The program's operator new and delete: memory.cpp is a part of this program.
#include "stint/detail/frame_memory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace stint {
namespace {

void on_a_fresh_thread(auto body) { std::thread(body).join(); }

TEST(Memory, what_was_deleted_is_given_to_the_next_of_its_size) {
  on_a_fresh_thread([] {
    for (const bool sized : {true, false}) {
      void* const first = ::operator new(100);
      if (sized) {
        ::operator delete(first, 100);
      } else {
        ::operator delete(first);
      }
      void* const second = ::operator new(104);  // the same step
      EXPECT_EQ(first, second) << sized;
      ::operator delete(second, 104);
    }
  });
}

TEST(Memory, blocks_of_all_sizes_are_apart_and_aligned_however_they_were_freed) {
  on_a_fresh_thread([] {
    for (int round = 0; round < 3; ++round) {
      std::vector<std::pair<unsigned char*, std::size_t>> blocks;
      for (std::size_t size = 0; size < 9000; size += size < 100 ? 1 : 37) {
        auto* const block = static_cast<unsigned char*>(::operator new(size));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 16, 0U);
        std::memset(block, static_cast<int>(size % 251), size);
        blocks.emplace_back(block, size);
      }
      for (const auto& [block, size] : blocks) {
        for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(block[i], size % 251) << size;
      }
      for (const auto& [block, size] : blocks) {
        if ((size + static_cast<std::size_t>(round)) % 2 == 0) {
          ::operator delete(block, size);
        } else {
          ::operator delete(block);
        }
      }
    }
  });
}

TEST(Memory, no_more_than_the_bound_is_kept_and_nothing_after_the_thread) {
  on_a_fresh_thread([] {
    std::vector<std::unique_ptr<std::string>> texts;
    for (std::size_t i = 0; i < 2 * detail::kFrameMemoryKeptMax / 1000; ++i)
      texts.push_back(std::make_unique<std::string>(1000, 'x'));
    texts.clear();
    EXPECT_GT(detail::frame_memory_kept(), detail::kFrameMemoryKeptMax / 2);
    EXPECT_LE(detail::frame_memory_kept(), detail::kFrameMemoryKeptMax);
  });
}

TEST(Memory, a_block_may_end_on_another_thread) {
  std::vector<std::unique_ptr<std::string>> texts;
  for (int i = 0; i < 1000; ++i) texts.push_back(std::make_unique<std::string>(50, 'x'));
  on_a_fresh_thread([&] { texts.clear(); });
}

TEST(Memory, what_there_is_not_is_refused) {
  constexpr std::size_t kTooMuch = std::numeric_limits<std::size_t>::max() / 4;
  EXPECT_THROW((void)::operator new(kTooMuch), std::bad_alloc);
  EXPECT_EQ(::operator new(kTooMuch, std::nothrow), nullptr);
  ::operator delete(nullptr);
  ::operator delete(nullptr, 8);
}

}  // namespace
}  // namespace stint
