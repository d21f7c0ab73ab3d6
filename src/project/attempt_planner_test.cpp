#include "project/attempt_planner.hpp"

#include "agent/test_folder.hpp"

#include <gtest/gtest.h>

namespace stint::project {
namespace {

using Changes = std::vector<std::string>;

TEST(SecretsToWithhold, are_the_users_token_and_the_password_of_the_store) {
  EXPECT_EQ(secrets_to_withhold({}, "sqlite"), (Changes{"STINT_TOKEN", "STINT_URL"}));
  EXPECT_EQ(secrets_to_withhold({{"STINT_STORE", "postgres://u:geheim@h/d"}}, "postgres://u:geheim@h/d"),
            (Changes{"STINT_TOKEN", "STINT_URL", "STINT_STORE=postgres://u:***@h/d", "PGPASSWORD"}));
  EXPECT_EQ(secrets_to_withhold({{"STINT_STORE", "postgres://u@h/d"}}, "postgres://u@h/d"),
            (Changes{"STINT_TOKEN", "STINT_URL", "PGPASSWORD"}));
}

TEST(SecretsToWithhold, leave_a_run_its_own_token) {
  EXPECT_EQ(secrets_to_withhold({{"STINT_RUN", "a:1"}, {"STINT_TOKEN", "of the run"}}, "sqlite"), Changes{});
}

TEST(UntrustedEnvironment, runs_no_program_from_the_checkout) {
  const Changes git{"GIT_CONFIG_KEY_0=core.fsmonitor",
                    "GIT_CONFIG_VALUE_0=false",
                    "GIT_CONFIG_KEY_1=core.hooksPath",
                    "GIT_CONFIG_VALUE_1=/dev/null",
                    "GIT_CONFIG_KEY_2=diff.ignoreSubmodules",
                    "GIT_CONFIG_VALUE_2=all",
                    "GIT_CONFIG_COUNT=3"};
  EXPECT_EQ(untrusted_environment({{"PATH", "/bin:/usr/bin"}}), git);
  EXPECT_EQ(untrusted_environment({{"PATH", "./node_modules/.bin:/bin::bin:.:/usr/bin:"}})[0], "PATH=/bin:/usr/bin");
  const Changes further = untrusted_environment({{"PATH", "/bin"}, {"GIT_CONFIG_COUNT", "2"}});
  EXPECT_EQ(further.front(), "GIT_CONFIG_KEY_2=core.fsmonitor");
  EXPECT_EQ(further.back(), "GIT_CONFIG_COUNT=5");
  const Changes modules = untrusted_environment({{"PATH", "/bin"}}, {"a/b"});
  EXPECT_EQ(modules.at(6), "GIT_CONFIG_KEY_3=submodule.a/b.ignore");
}

}  // namespace
}  // namespace stint::project
