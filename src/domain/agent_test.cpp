#include "domain/agent.hpp"

#include <gtest/gtest.h>

namespace stint::domain {
namespace {

TEST(AgentName, is_short_lower_case_and_safe_as_a_file_name) {
  for (const char* const good : {"a", "0", "review", "review-2", "a_b", "9lives"})
    EXPECT_TRUE(is_agent_name(good)) << good;
  for (const char* const bad : {"", "-a", "_a", "Review", "a.b", "a/b", "a b", "ä", "../x", "a:b"}) {
    EXPECT_FALSE(is_agent_name(bad)) << bad;
  }
  EXPECT_TRUE(is_agent_name(std::string(kAgentNameMax, 'a')));
  EXPECT_FALSE(is_agent_name(std::string(kAgentNameMax + 1, 'a')));
}

TEST(LimitName, never_leaves_its_folder) {
  for (const char* const good : {"gpu", "model:opus", "account:anthropic", "host", "GPU.0"}) {
    EXPECT_TRUE(is_limit_name(good)) << good;
  }
  for (const char* const bad : {"", ".", "..", "a..b", "../x", "a/b", ":x", "a b", "a\n", ".hidden"}) {
    EXPECT_FALSE(is_limit_name(bad)) << bad;
  }
}

TEST(ArgumentName, begins_with_a_letter_so_that_a_value_is_not_mistaken_for_it) {
  for (const char* const good : {"pr", "Focus", "_x", "a-b", "a1"}) EXPECT_TRUE(is_argument_name(good)) << good;
  for (const char* const bad : {"", "1a", "a.b", "http://x", "a b", "-a"}) EXPECT_FALSE(is_argument_name(bad)) << bad;
}

}  // namespace
}  // namespace stint::domain
