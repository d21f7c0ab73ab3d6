#include "agent/project.hpp"

#include "agent/test_folder.hpp"

#include <gtest/gtest.h>

namespace stint::agent {
namespace {

namespace fs = std::filesystem;

TEST(Project, a_checkout_is_found_from_below) {
  const TestFolder folder;
  folder.write("repo/.git/HEAD", "ref: refs/heads/main\n");  // unborn: no refs, no objects
  fs::create_directories(folder / "repo/a/b");
  const Project project = blocking_find_project(folder / "repo/a/b").value();
  EXPECT_EQ(project.root, folder / "repo");
  EXPECT_EQ(project.common_dir, folder / "repo/.git");
  EXPECT_FALSE(project.is_worktree());
  EXPECT_EQ(project.identity(), folder / "repo/.git");
}

TEST(Project, a_worktree_shares_the_repository_but_not_the_checkout) {
  const TestFolder folder;
  folder.write("repo/.git/HEAD", "ref: refs/heads/main\n");
  folder.write("repo/.git/worktrees/wt/HEAD", "ref: refs/heads/x\n");
  folder.write("repo/.git/worktrees/wt/commondir", "../..\n");
  folder.write("repo/.git/worktrees/wt/gitdir", (folder / "wt/.git").string() + "\n");
  folder.write("wt/.git", "gitdir: " + (folder / "repo/.git/worktrees/wt").string() + "\n");
  const Project project = blocking_find_project(folder / "wt").value();
  EXPECT_EQ(project.root, folder / "wt");
  EXPECT_EQ(project.git_dir, folder / "repo/.git/worktrees/wt");
  EXPECT_EQ(project.common_dir, folder / "repo/.git");
  EXPECT_TRUE(project.is_worktree());
  EXPECT_EQ(project.identity(), blocking_find_project(folder / "repo").value().identity());
}

TEST(Project, a_submodule_is_a_project_of_its_own) {
  const TestFolder folder;
  folder.write("repo/.git/HEAD", "x");
  folder.write("repo/.git/modules/sub/HEAD", "x");
  folder.write("repo/.git/modules/sub/config", "[core]\n\tworktree = ../../../sub\n");
  folder.write("repo/sub/.git", "gitdir: ../.git/modules/sub\n");
  const Project project = blocking_find_project(folder / "repo/sub").value();
  EXPECT_EQ(project.root, folder / "repo/sub");
  EXPECT_EQ(project.common_dir, folder / "repo/.git/modules/sub");
}

TEST(Project, a_git_file_with_a_missing_target_is_an_error) {
  const TestFolder folder;
  folder.write("wt/.git", "gitdir: /nowhere/at/all\n");
  const auto project = blocking_find_project(folder / "wt");
  ASSERT_FALSE(project);
  EXPECT_NE(project.error().what().find("/nowhere/at/all"), std::string_view::npos);
  EXPECT_NE(project.error().what().find("git worktree repair"), std::string_view::npos);
  folder.write("other/.git", "rubbish");
  EXPECT_FALSE(blocking_find_project(folder / "other"));
}

TEST(Project, outside_a_repository_the_marked_folder_or_the_own) {
  const TestFolder folder;
  fs::create_directories(folder / "a/b/c");
  EXPECT_EQ(blocking_find_project(folder / "a/b/c").value().root, folder / "a/b/c");
  EXPECT_FALSE(blocking_find_project(folder / "a/b/c").value().is_repository());
  fs::create_directories(folder / "a/.stint");
  EXPECT_EQ(blocking_find_project(folder / "a/b/c").value().root, folder / "a");
  folder.write("a/b/stint.toml", "");
  EXPECT_EQ(blocking_find_project(folder / "a/b/c").value().root, folder / "a/b");
  fs::create_directories(folder / "a/b/.git");  // empty: no repository
  EXPECT_FALSE(blocking_find_project(folder / "a/b/c").value().is_repository());
}

TEST(Project, a_missing_folder_is_an_error) { EXPECT_FALSE(blocking_find_project("/nowhere/at/all")); }

TEST(Project, links_to_a_project_are_the_same_project) {
  const TestFolder folder;
  folder.write("repo/.git/HEAD", "x");
  fs::create_directory_symlink("repo", folder / "link");
  EXPECT_EQ(blocking_find_project(folder / "link").value().root, folder / "repo");
}

TEST(UserPlaces, follow_the_xdg_rules) {
  EXPECT_EQ(user_places({{"HOME", "/home/u"}}).value().config, "/home/u/.config/stint");
  EXPECT_EQ(user_places({{"HOME", "/home/u"}}).value().state, "/home/u/.local/state/stint");
  EXPECT_EQ(user_places({{"HOME", "/h"}, {"XDG_STATE_HOME", "/s"}}).value().state, "/s/stint");
  EXPECT_EQ(user_places({{"HOME", "/h"}, {"XDG_STATE_HOME", "relative"}}).value().state, "/h/.local/state/stint");
  EXPECT_EQ(user_places({{"XDG_CONFIG_HOME", "/c"}, {"XDG_STATE_HOME", "/s"}}).value().config, "/c/stint");
  EXPECT_FALSE(user_places({}));
}

}  // namespace
}  // namespace stint::agent
