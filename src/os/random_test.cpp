#include "os/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace stint::os {
namespace {

constexpr int kMany = 10'000;

TEST(Random, no_number_comes_twice) {
  Random random, another;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < kMany; ++i) {
    EXPECT_TRUE(seen.insert(random()).second);
    EXPECT_TRUE(seen.insert(another()).second);
  }
}

TEST(Random, every_bit_is_set_in_half_of_them) {
  Random random;
  std::array<int, 64> set{};
  for (int i = 0; i < kMany; ++i) {
    const std::uint64_t number = random();
    for (std::size_t bit = 0; bit < set.size(); ++bit) set[bit] += static_cast<int>((number >> bit) & 1U);
  }
  // Ten standard deviations from the middle: practically never.
  for (const int count : set) EXPECT_NEAR(count, kMany / 2, 500);
}

TEST(Random, keeps_no_copy_of_drawn_numbers) {
  Random random;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t given = random();
    std::array<unsigned char, sizeof(Random)> bytes{};
    std::memcpy(bytes.data(), static_cast<const void*>(&random), bytes.size());
    std::array<unsigned char, sizeof given> needle{};
    std::memcpy(needle.data(), &given, sizeof given);
    EXPECT_EQ(std::ranges::search(bytes, needle).begin(), bytes.end());
  }
}

/// The reactor's thread and the store's draw ids and tokens: without a lock two of them get one number, or read
/// beyond the buffer.
TEST(Random, threads_that_draw_at_once_get_different_numbers) {
  constexpr std::size_t kThreads = 4, kEach = 50'000;
  Random random;
  std::vector<std::vector<std::uint64_t>> drawn(kThreads);
  {
    std::vector<std::jthread> threads;
    for (std::vector<std::uint64_t>& mine : drawn) {
      threads.emplace_back([&random, &mine] {
        mine.reserve(kEach);
        for (std::size_t i = 0; i < kEach; ++i) mine.push_back(random());
      });
    }
  }
  std::vector<std::uint64_t> all;
  for (const std::vector<std::uint64_t>& mine : drawn) all.insert(all.end(), mine.begin(), mine.end());
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
  EXPECT_NE(all.front(), 0U);  // taken numbers are zeroed
}

}  // namespace
}  // namespace stint::os
