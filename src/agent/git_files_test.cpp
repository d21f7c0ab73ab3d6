#include "agent/git_files.hpp"

#include "agent/test_folder.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <random>

namespace stint::agent {
namespace {

namespace fs = std::filesystem;

class GitFiles : public ::testing::Test {
 protected:
  GitFiles() {
    folder_.write("repo/.git/HEAD", "x");
    folder_.write("repo/.git/config", "[core]\n\tbare = false\n");
    folder_.write("repo/.git/worktrees/wt/HEAD", "x");
    folder_.write("repo/.git/worktrees/wt/commondir", "../..\n");
    folder_.write("repo/.git/worktrees/wt/gitdir", (folder_ / "wt/.git").string() + "\n");
    folder_.write("wt/.git", "gitdir: " + (folder_ / "repo/.git/worktrees/wt").string() + "\n");
    fs::create_directories(folder_ / "evil");
  }
  Result<std::optional<GitFolders>> find(std::string_view name) const { return blocking_find_git(folder_ / name); }
  /// The message of the refusal; empty: it is a checkout, or none.
  std::string refusal(std::string_view name) const {
    const auto found = find(name);
    if (found) return {};
    EXPECT_EQ(found.error(), Errc::denied) << found.error().what();
    return std::string(found.error().what());
  }

  TestFolder folder_;
};

TEST_F(GitFiles, a_worktree_is_one_if_both_ends_name_each_other) {
  EXPECT_EQ(find("wt").value()->common_dir, folder_ / "repo/.git");
  folder_.write("repo/.git/worktrees/wt/gitdir", "../../../../wt/.git\n");  // worktree.useRelativePaths
  folder_.write("wt/.git", "gitdir: ../repo/.git/worktrees/wt\n");
  EXPECT_EQ(find("wt").value()->git_dir, folder_ / "repo/.git/worktrees/wt");
  for (const std::string& named : {(folder_ / "evil/.git").string(), (folder_ / "wt/other").string(), std::string()}) {
    folder_.write("repo/.git/worktrees/wt/gitdir", named + "\n");
    EXPECT_NE(refusal("wt").find("git worktree repair"), std::string::npos) << named;
  }
  fs::remove(folder_ / "repo/.git/worktrees/wt/gitdir");
  EXPECT_NE(refusal("wt"), "");
}

TEST_F(GitFiles, a_repository_is_not_borrowed) {
  for (const std::string_view named : {"repo/.git", "repo/.git/worktrees/wt"}) {
    folder_.write("evil/.git", "gitdir: " + (folder_ / named).string() + "\n");
    EXPECT_NE(refusal("evil"), "") << named;
    folder_.write("evil/.git", "gitdir: ../" + std::string(named) + "\n");
    EXPECT_NE(refusal("evil"), "") << named;
  }
  // An entry that the folder brought along, which names both.
  folder_.write("evil/x/worktrees/wt/HEAD", "x");
  folder_.write("evil/x/worktrees/wt/gitdir", (folder_ / "evil/.git").string());
  folder_.write("evil/x/worktrees/wt/commondir", (folder_ / "repo/.git").string());
  folder_.write("evil/.git", "gitdir: x/worktrees/wt\n");
  EXPECT_NE(refusal("evil").find("commondir"), std::string::npos);
}

TEST_F(GitFiles, a_link_is_refused) {
  for (const std::string_view target : {"repo/.git", "wt/.git", "nowhere"}) {
    fs::create_symlink(folder_ / target, folder_ / "evil/.git");
    EXPECT_NE(refusal("evil").find("symbolic link"), std::string::npos) << target;
    fs::remove(folder_ / "evil/.git");
  }
}

TEST_F(GitFiles, a_folder_has_no_commondir) {
  folder_.write("evil/.git/HEAD", "x");
  EXPECT_EQ(refusal("evil"), "");
  folder_.write("evil/.git/commondir", (folder_ / "repo/.git").string());
  EXPECT_NE(refusal("evil").find("commondir"), std::string::npos);
}

TEST_F(GitFiles, a_separate_git_directory_names_its_folder) {
  folder_.write("repo/.git/modules/sub/HEAD", "x");
  folder_.write("repo/sub/.git", "gitdir: ../.git/modules/sub\n");
  folder_.write("evil/.git", "gitdir: " + (folder_ / "repo/.git/modules/sub").string());
  EXPECT_NE(refusal("repo/sub").find("core.worktree"), std::string::npos);
  for (const char* const file : {"config", "config.worktree"}) {
    const std::string path = std::string("repo/.git/modules/sub/") + file;
    folder_.write(path, "[core]\n\tworktree = ../../../sub\n");
    EXPECT_EQ(find("repo/sub").value()->common_dir, folder_ / "repo/.git/modules/sub");
    EXPECT_NE(refusal("evil").find("core.worktree"), std::string::npos);
    fs::remove(folder_ / path);
  }
}

TEST_F(GitFiles, a_bare_repository_may_lie_in_the_folder_of_its_worktrees) {
  folder_.write("all/.bare/HEAD", "x");
  folder_.write("all/.bare/config", "[core]\n\tbare = true\n");
  folder_.write("all/.git", "gitdir: ./.bare\n");
  EXPECT_EQ(find("all").value()->common_dir, folder_ / "all/.bare");
  folder_.write("evil/.git", "gitdir: ../all/.bare\n");
  EXPECT_NE(refusal("evil"), "");
  // A checkout inside a folder does not make the folder a checkout.
  folder_.write("outer/inner/.git/HEAD", "x");
  folder_.write("outer/inner/.git/config", "[core]\n\tbare = true\n");
  folder_.write("outer/.git", "gitdir: inner/.git\n");
  EXPECT_NE(refusal("outer"), "");
}

TEST(CoreSetting, is_read_as_git_reads_it) {
  const auto worktree = [](std::string_view text) { return core_setting(text, "worktree").value_or("(none)"); };
  EXPECT_EQ(worktree(""), "(none)");
  EXPECT_EQ(worktree("[core]\n\tworktree = ../a b  # why\n"), "../a b");
  EXPECT_EQ(worktree("[CORE]\nWorkTree=\"/a;b \\\"x\\\" \" ; c"), "/a;b \"x\" ");
  EXPECT_EQ(worktree("[core] bare = true\nworktree = a\\\nb\n[core]\nworktree = c\\tq"), "c\tq");
  EXPECT_EQ(worktree("[core \"x\"]\nworktree = a\n[other]\nworktree = b\n"), "(none)");
  EXPECT_EQ(worktree("# [core]\n;\n[core]\n; worktree = a\n#worktree = b"), "(none)");
  EXPECT_EQ(worktree("[core]\nworktree = a\r\n"), "a");
  EXPECT_EQ(worktree("[core"), "(none)");
  EXPECT_EQ(worktree("\xEF\xBB\xBF[core]worktree=a"), "a");
  EXPECT_EQ(core_setting("[core]\nbare\n", "bare"), "true");
  EXPECT_EQ(core_setting("[core]\nfilemode = true\nbare = false", "bare"), "false");
}

TEST(GitConfig, has_sections_with_names) {
  const auto settings = parse_git_config("[Filter \"a]b\\\"\"] Clean = x\n[diff.Old]\n\tTextConv = y # z\n").value();
  ASSERT_EQ(settings.size(), 2U);
  EXPECT_EQ(settings[0].name() + "=" + settings[0].value, "filter.a]b\".clean=x");
  EXPECT_EQ(settings[1].name() + "=" + settings[1].value, "diff.old.textconv=y");
  for (const char* const wrong : {"x = 1", "[a", "[a \"b]\nx = 1", "[a]\nb c = 1", "[a]\n= 1"}) {
    EXPECT_FALSE(parse_git_config(wrong)) << wrong;
  }
}

TEST_F(GitFiles, programs_of_a_repository_are_found) {
  const fs::path git = folder_ / "repo/.git";
  EXPECT_TRUE(blocking_find_git_programs(folder_ / "repo", {git, git}).found.empty());
  folder_.write("repo/.git/config",
                "[core]\n\tfsmonitor = evil\n\thooksPath = .husky\n[remote \"origin\"]\n\turl = x\n[filter \"lfs\"]\n\t"
                "clean = git-lfs clean -- %f\n[alias]\n\tst = status\n[pager]\n\tlog = false\n");
  EXPECT_TRUE(blocking_find_git_programs(folder_ / "repo", {git, git}).found.empty()) << "an ordinary one";
  for (const char* const text :
       {"[filter \"x\"]\nclean = evil", "[filter \"lfs\"]\nclean = \"git-lfs clean -- %f; evil\"",
        "[diff]\nexternal=evil", "[DIFF \"x\"] TextConv=evil", "[include]\npath = /x",
        "[includeIf \"gitdir:/\"]\npath = x", "[alias]\nst = !evil", "[core]\nsshCommand = evil", "[pager]\nlog = evil",
        "[submodule \"x\"]\nupdate = !evil", "not a config"}) {
    folder_.write("repo/.git/config", text);
    EXPECT_EQ(blocking_find_git_programs(folder_ / "repo", {git, git}).found.size(), 1U) << text;
    folder_.write("repo/.git/config", "");
    folder_.write("repo/.git/worktrees/wt/config.worktree", text);
    EXPECT_EQ(blocking_find_git_programs(folder_ / "wt", {git / "worktrees/wt", git}).found.size(), 1U) << text;
    fs::remove(git / "worktrees/wt/config.worktree");
  }
}

TEST_F(GitFiles, submodules_are_found_by_name) {
  const fs::path git = folder_ / "repo/.git";
  folder_.write("repo/.git/config", "[submodule \"A\"]\n\tactive = true\n");
  folder_.write("repo/.gitmodules", "[submodule \"b/c\"]\n\tpath = c\n\tignore = none\n[alias]\n\tx = !y\n");
  const GitPrograms programs = blocking_find_git_programs(folder_ / "repo", {git, git});
  EXPECT_TRUE(programs.found.empty());
  EXPECT_EQ(programs.submodules, (std::vector<std::string>{"A", "b/c"}));
  folder_.write("repo/.gitmodules", "nonsense");
  EXPECT_EQ(blocking_find_git_programs(folder_ / "repo", {git, git}).found.size(), 1U);
}

TEST(GitConfigProperty, any_text_is_parsed_or_refused) {
  std::mt19937 random(20261118);
  const std::string_view pieces[] = {"[", "]",  "\"", "\\", "=",    "\n", "#", ";",
                                     " ", "\t", "\r", "a",  "Core", ".",  "-", "\xEF\xBB\xBF"};
  for (int round = 0; round < 20'000; ++round) {
    std::string text = round % 2 == 0 ? "[core]\n" : "";
    for (std::size_t left = random() % 16; left > 0; --left) text += pieces[random() % std::size(pieces)];
    const auto settings = parse_git_config(text);
    if (!settings) continue;
    for (const GitSetting& setting : *settings) {
      EXPECT_FALSE(setting.section.empty()) << text;
      EXPECT_FALSE(setting.key.empty()) << text;
    }
  }
}

}  // namespace
}  // namespace stint::agent
