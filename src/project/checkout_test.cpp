#include "project/checkout.hpp"

#include "agent/test_folder.hpp"

#include <gtest/gtest.h>

namespace stint::project {
namespace {

TEST(Checkout, a_folder_outside_a_repository_does_not_set_the_retention_of_the_shared_store) {
  const agent::TestFolder folder;
  folder.write("plain/stint.toml", "[retention]\nruns = \"1s\"\n");
  folder.write("repo/.git/HEAD", "x");
  folder.write("repo/stint.toml", "[retention]\nruns = \"1s\"\n");
  Location location;
  location.variables = {{"HOME", folder.path().string()}};
  location.folder = folder / "plain";
  EXPECT_EQ(blocking_read_checkout(location).value().settings.retention, std::chrono::days(30));
  location.folder = folder / "repo";
  EXPECT_EQ(blocking_read_checkout(location).value().settings.retention, std::chrono::seconds(1));
  location.folder = folder / "plain";
  folder.write(".config/stint/config.toml", "[retention]\nruns = \"7d\"\n");
  EXPECT_EQ(blocking_read_checkout(location).value().settings.retention, std::chrono::days(7));
}

}  // namespace
}  // namespace stint::project
