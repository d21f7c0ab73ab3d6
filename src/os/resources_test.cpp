#include "os/resources.hpp"

#include "os/fd.hpp"

#include <gtest/gtest.h>

#include <unistd.h>
#include <vector>

namespace stint::os {
namespace {

TEST(Resources, the_bound_of_descriptors_is_never_below_their_count) {
  std::vector<Fd> held;
  for (int i = 0; i < 600; ++i) {
    ASSERT_GE(descriptors_bound(), blocking_descriptors().used) << i;
    held.emplace_back(::dup(0));
    ASSERT_TRUE(held.back());
  }
  EXPECT_GE(blocking_descriptors().used, 600U);
  EXPECT_LT(descriptors_bound(), 1U << 20U) << "near enough to rule out a shortage";
}

TEST(Resources, memory_is_available) { EXPECT_GT(memory_available(), 1U << 20U); }

}  // namespace
}  // namespace stint::os
