#include "project/limit_settings.hpp"

#include "agent/test_folder.hpp"
#include "project/checkout.hpp"

#include <gtest/gtest.h>

namespace stint::project {
namespace {

class LimitSettingsTest : public testing::Test {
 protected:
  Checkout read(const std::string& folder) {
    location_ = {folder_ / folder, {{"HOME", (folder_ / "home").string()}}};
    return blocking_read_checkout(location_).value();
  }
  LimitDirectories directories(const std::string& folder) {
    const Checkout checkout = read(folder);
    return blocking_find_limit_directories(checkout.project, checkout.settings, location_.variables).value();
  }

  const agent::TestFolder folder_;
  Location location_;
};

TEST_F(LimitSettingsTest, worktrees_share_the_limits_of_agents_and_projects_all_others) {
  folder_.write("repo/.git/HEAD", "x");
  folder_.write("plain/stint.toml", "");
  EXPECT_EQ(directories("repo").agents, (folder_ / "repo/.git/stint/semaphores").string());
  EXPECT_EQ(directories("plain").agents, (folder_ / "plain/.stint/semaphores").string());
  EXPECT_EQ(directories("repo").limits, (folder_ / "home/.local/state/stint/limits").string());
  EXPECT_EQ(directories("plain").limits, directories("repo").limits);
  EXPECT_FALSE(directories("repo").shared);
}

TEST_F(LimitSettingsTest, a_checkout_of_coven_shares_its_capacities_with_coven) {
  folder_.write("repo/.git/HEAD", "x");
  folder_.write("repo/.coven/agents/a.md", "x");
  EXPECT_EQ(directories("repo").agents, (folder_ / "repo/.git/coven/semaphores").string());
  folder_.write("repo/.stint/agents/a.md", "x");
  EXPECT_EQ(directories("repo").agents, (folder_ / "repo/.git/stint/semaphores").string());
}

TEST_F(LimitSettingsTest, limits_dir_is_shared_between_users) {
  folder_.write("home/.config/stint/config.toml", "limits_dir = \"/srv/limits\"\n");
  folder_.write("repo/.git/HEAD", "x");
  EXPECT_EQ(directories("repo").limits, "/srv/limits");
  EXPECT_TRUE(directories("repo").shared);
}

TEST_F(LimitSettingsTest, without_a_home_there_is_no_directory) {
  folder_.write("plain/stint.toml", "");
  const Checkout checkout = read("plain");
  const auto found = blocking_find_limit_directories(checkout.project, checkout.settings, {});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error(), Errc::invalid);
}

TEST_F(LimitSettingsTest, a_capacity_is_that_of_the_settings) {
  folder_.write("repo/.git/HEAD", "x");
  folder_.write("repo/stint.toml", "[limits]\ngpu = 2\nhost = \"auto\"\n");
  const Checkout checkout = read("repo");
  EXPECT_EQ(configured_capacity(checkout.settings, "gpu"), 2U);
  EXPECT_GE(configured_capacity(checkout.settings, "host").value_or(0), 1U);
  EXPECT_EQ(configured_capacity(checkout.settings, "tpu"), std::nullopt);
}

}  // namespace
}  // namespace stint::project
