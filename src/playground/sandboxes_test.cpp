#include "playground/sandboxes.hpp"

#include <gtest/gtest.h>

namespace stint::playground {
namespace {

using namespace std::chrono_literals;

Sandbox at_step(std::uint32_t step) {
  Sandbox sandbox;
  sandbox.step = step;
  return sandbox;
}

TEST(Sandboxes, a_new_one_takes_the_place_of_the_longest_idle) {
  Sandboxes sandboxes;
  for (std::size_t i = 0; i < kSandboxesMax; ++i) sandboxes.add(std::to_string(i), at_step(0), Duration(i));
  EXPECT_NE(sandboxes.find("0", 100ns), nullptr);  // used: now 1 is the longest idle
  sandboxes.add("new", at_step(0), 101ns);
  EXPECT_EQ(sandboxes.count(101ns), kSandboxesMax);
  EXPECT_EQ(sandboxes.find("1", 102ns), nullptr);
  EXPECT_NE(sandboxes.find("0", 102ns), nullptr);
}

TEST(Sandboxes, an_idle_one_is_dropped) {
  Sandboxes sandboxes;
  sandboxes.add("a", at_step(0), 0s);
  EXPECT_EQ(sandboxes.count(kSandboxIdleMax - 1s), 1U);
  EXPECT_NE(sandboxes.find("a", kSandboxIdleMax - 1s), nullptr);
  EXPECT_NE(sandboxes.find("a", kSandboxIdleMax), nullptr);  // it was used since
  EXPECT_EQ(sandboxes.find("a", 2 * kSandboxIdleMax), nullptr);
  EXPECT_EQ(sandboxes.count(2 * kSandboxIdleMax), 0U);
}

TEST(Sandboxes, of_two_changes_at_once_only_the_first_counts) {
  Sandboxes sandboxes;
  const auto before = sandboxes.add("a", at_step(1), 0s);
  EXPECT_TRUE(sandboxes.replace("a", before, at_step(2), 1s));
  EXPECT_FALSE(sandboxes.replace("a", before, at_step(3), 1s));
  EXPECT_EQ(sandboxes.find("a", 1s)->step, 2U);
  EXPECT_EQ(before->step, 1U);
}

TEST(Sandboxes, a_removed_one_is_gone) {
  Sandboxes sandboxes;
  const auto before = sandboxes.add("a", at_step(1), 0s);
  EXPECT_TRUE(sandboxes.remove("a"));
  EXPECT_FALSE(sandboxes.remove("a"));
  EXPECT_FALSE(sandboxes.replace("a", before, at_step(2), 1s));
  EXPECT_EQ(sandboxes.count(0s), 0U);
}

}  // namespace
}  // namespace stint::playground
