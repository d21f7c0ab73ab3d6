#include "cli/host_parts.hpp"

#include <gtest/gtest.h>

namespace stint::cli {
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

}  // namespace
}  // namespace stint::cli
