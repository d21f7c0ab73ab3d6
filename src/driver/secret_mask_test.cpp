#include "driver/secret_mask.hpp"

#include <gtest/gtest.h>

namespace stint::driver {
namespace {

std::string masked(const SecretMask& mask, std::string text) {
  mask.apply(text);
  return text;
}

TEST(SecretMask, takes_out_what_the_environment_calls_secret) {
  const SecretMask mask = SecretMask::of_environment({{"ANTHROPIC_API_KEY", "sk-ant-12345"},
                                                      {"GH_TOKEN", "ghp_abcdefgh"},
                                                      {"DB_PASSWORD", "correct horse"},
                                                      {"EDITOR", "/usr/bin/vi"},
                                                      {"SHORT_KEY", "yes"}});
  EXPECT_EQ(masked(mask, "key sk-ant-12345, again sk-ant-12345 and ghp_abcdefgh"), "key ***, again *** and ***");
  EXPECT_EQ(masked(mask, "correct horse"), "***");
  EXPECT_EQ(masked(mask, "/usr/bin/vi says yes"), "/usr/bin/vi says yes") << "too short to be taken for one";
}

TEST(SecretMask, a_secret_within_another_leaves_nothing_of_it) {
  SecretMask mask;
  mask.add("12345678");
  mask.add("run-12345678-abcdef");
  EXPECT_EQ(masked(mask, "run-12345678-abcdef"), "***");
  EXPECT_EQ(masked(mask, "12345678"), "***");
}

TEST(SecretMask, nothing_to_take_out_changes_nothing) {
  SecretMask mask;
  mask.add("");
  std::string text = "all is well";
  EXPECT_FALSE(mask.apply(text));
  EXPECT_EQ(text, "all is well");
}

}  // namespace
}  // namespace stint::driver
