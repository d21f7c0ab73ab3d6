#include "os/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>

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
  // Ten standard deviations from the middle: not once in the life of this test.
  for (const int count : set) EXPECT_NEAR(count, kMany / 2, 500);
}

TEST(Random, keeps_nothing_of_what_it_gave) {
  Random random;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t given = random();
    const auto bytes = std::bit_cast<std::array<unsigned char, sizeof(Random)>>(random);
    std::array<unsigned char, sizeof given> needle{};
    std::memcpy(needle.data(), &given, sizeof given);
    EXPECT_EQ(std::ranges::search(bytes, needle).begin(), bytes.end());
  }
}

}  // namespace
}  // namespace stint::os
