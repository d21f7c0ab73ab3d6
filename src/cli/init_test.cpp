#include "cli/init.hpp"

#include "agent/check.hpp"
#include "agent/files.hpp"
#include "agent/test_folder.hpp"

#include <gtest/gtest.h>

namespace stint::cli {
namespace {

namespace fs = std::filesystem;
using agent::TestFolder;

std::string actions(const std::vector<wire::InitFile>& files) {
  std::string out;
  for (const wire::InitFile& file : files) out += file.action + " ";
  return out;
}

TEST(Init, writes_files_without_problems) {
  const TestFolder folder;
  EXPECT_EQ(actions(blocking_write_templates(folder.path(), false)), "made made made made made made made ");
  const agent::Catalogue catalogue = agent::blocking_discover(folder.path());
  const agent::LoadedSettings loaded = agent::blocking_load_settings(folder.path(), {});
  for (const agent::Problem& problem : catalogue.problems) ADD_FAILURE() << describe(problem);
  for (const agent::Problem& problem : loaded.problems) ADD_FAILURE() << describe(problem);
  for (const agent::Problem& problem : check_whole(catalogue, loaded.settings)) ADD_FAILURE() << describe(problem);
  ASSERT_EQ(catalogue.agents.size(), 3U);
  const domain::Agent* const dispatch = catalogue.find("dispatch");
  ASSERT_NE(dispatch, nullptr);
  EXPECT_EQ(dispatch->description, "Route work to agents based on issue state");
  EXPECT_EQ(dispatch->max_concurrency, 1U);
  EXPECT_FALSE(catalogue.system_prompt.empty());
  EXPECT_EQ(loaded.settings.entry_agent, "dispatch");
}

TEST(Init, the_settings_offer_the_drivers_that_there_are) {
  const TestFolder folder;
  ASSERT_FALSE(blocking_write_templates(folder.path(), false).empty());
  const std::string text = agent::blocking_read_file(folder / "stint.toml", 10'000).value();
  const std::size_t at = text.find("# driver = ");
  ASSERT_NE(at, std::string::npos);
  const std::string line = text.substr(at, text.find('\n', at) - at);
  EXPECT_TRUE(line.contains("\"" + std::string(domain::kDefaultDriver.name) + "\"")) << line;
  EXPECT_TRUE(line.ends_with("# " + domain::driver_choices())) << line;
}

TEST(Init, never_overwrites) {
  const TestFolder folder;
  folder.write("brief.md", "mine");
  folder.write(".stint/agents/review.md", "mine, and broken");
  EXPECT_EQ(actions(blocking_write_templates(folder.path(), false)), "made made kept made made kept made ");
  EXPECT_EQ(agent::blocking_read_file(folder / "brief.md", 100).value(), "mine");
  EXPECT_EQ(agent::blocking_read_file(folder / ".stint/agents/review.md", 100).value(), "mine, and broken");
  EXPECT_EQ(actions(blocking_write_templates(folder.path(), false)), "kept kept kept kept kept kept kept ");
}

TEST(Init, a_dry_run_writes_nothing) {
  const TestFolder folder;
  EXPECT_EQ(actions(blocking_write_templates(folder.path(), true)), "made made made made made made made ");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Init, follows_no_link_out_of_the_checkout) {
  const TestFolder folder;
  const TestFolder outside;
  fs::create_directory_symlink(outside.path(), folder / ".stint");
  const auto files = blocking_write_templates(folder.path(), false);
  EXPECT_EQ(actions(files), "failed failed failed failed made made failed ");
  EXPECT_TRUE(fs::is_empty(outside.path()));
}

TEST(Init, reports_a_folder_that_cannot_be_created) {
  const TestFolder folder;
  folder.write(".stint", "a file");
  const auto files = blocking_write_templates(folder.path(), false);
  EXPECT_EQ(files[0].action, "failed");
  EXPECT_NE(files[0].purpose.find(".stint"), std::string::npos);
}

}  // namespace
}  // namespace stint::cli
