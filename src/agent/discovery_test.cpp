#include "agent/discovery.hpp"

#include "agent/files.hpp"
#include "agent/frontmatter.hpp"
#include "agent/test_folder.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

namespace stint::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGood = "---\ndescription: Good\n---\nDo it.\n";

std::string said(const Catalogue& catalogue) {
  std::string out;
  for (const Problem& problem : catalogue.problems) out += describe(problem) + "\n";
  return out;
}

std::string names(const Catalogue& catalogue) {
  std::string out;
  for (const domain::Agent& agent : catalogue.agents) out += agent.name + " ";
  return out;
}

TEST(Discovery, without_any_folder_there_are_no_agents_and_no_problems) {
  const TestFolder folder;
  const Catalogue found = blocking_discover(folder.path());
  EXPECT_TRUE(found.agents.empty());
  EXPECT_EQ(said(found), "");
}

TEST(Discovery, one_bad_file_does_not_hide_the_others) {
  const TestFolder folder;
  folder.write(".stint/agents/b.md", kGood);
  folder.write(".stint/agents/a.md", kGood);
  folder.write(".stint/agents/broken.md", "---\nmax_concurrency: 0\ndescription: d\n---\nx");
  folder.write(".stint/agents/README.md", "# Our agents");
  folder.write(".stint/agents/notes.txt", "x");
  folder.write(".stint/agents/.hidden.md", "x");
  const Catalogue found = blocking_discover(folder.path());
  EXPECT_EQ(names(found), "a b ");
  EXPECT_EQ(found.broken, std::vector<std::string>{"broken"});
  EXPECT_EQ(
      said(found),
      ".stint/agents/broken.md:2:18: error: max_concurrency: must be at least 1, found 0; leave it out for no limit\n");
  EXPECT_NE(found.find("a"), nullptr);
  EXPECT_EQ(found.find("broken"), nullptr);
}

TEST(Discovery, own_files_win_over_foreign_ones_also_when_they_are_broken) {
  const TestFolder folder;
  folder.write(".stint/agents/review.md", kGood);
  folder.write(".claude/agents/review.md", "---\nname: review\ndescription: theirs\n---\nx");
  folder.write(".claude/agents/x.md", "---\nname: other\ndescription: theirs\n---\nx");
  folder.write(".coven/agents/other.md", "---\ndescription: coven's\n---\nx");
  folder.write(".github/agents/docs.agent.md", "---\ndescription: theirs\n---\nx");
  folder.write(".stint/agents/broken.md", "---\n---\nx");
  folder.write(".gemini/agents/broken.md", "---\ndescription: theirs\n---\nx");
  const Catalogue found = blocking_discover(folder.path());
  EXPECT_EQ(names(found), "docs other review ");
  EXPECT_EQ(found.find("review")->description, "Good");
  EXPECT_EQ(found.find("other")->format, domain::AgentFormat::coven);
  const std::string all = said(found);
  EXPECT_NE(
      all.find(".claude/agents/review.md: warning: hidden: the agent 'review' comes from .stint/agents/review.md"),
      std::string::npos)
      << all;
  EXPECT_NE(all.find(".claude/agents/x.md: warning: hidden: the agent 'other' comes from .coven/agents/other.md"),
            std::string::npos)
      << all;
  EXPECT_NE(all.find(".gemini/agents/broken.md: warning: hidden"), std::string::npos) << all;
}

TEST(Discovery, unreadable_files_are_reported_and_nothing_hangs) {
  const TestFolder folder;
  folder.write(".stint/agents/good.md", kGood);
  fs::create_directory(folder / ".stint/agents/folder.md");
  fs::create_symlink("loop.md", folder / ".stint/agents/loop.md");
  fs::create_symlink("nowhere", folder / ".stint/agents/dangling.md");
  fs::create_symlink("good.md", folder / ".stint/agents/link.md");
  ASSERT_EQ(::mkfifo((folder / ".stint/agents/pipe.md").c_str(), 0600), 0);
  folder.write(".stint/agents/large.md", std::string(kAgentFileMax + 1, 'x'));
  const Catalogue found = blocking_discover(folder.path());
  EXPECT_EQ(names(found), "good link ");
  const std::string all = said(found);
  for (const char* const name : {"folder", "loop", "dangling", "pipe", "large"}) {
    EXPECT_NE(all.find(std::string(".stint/agents/") + name + ".md: error: "), std::string::npos) << name << "\n"
                                                                                                  << all;
  }
}

TEST(Discovery, a_file_without_permission_is_reported) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const TestFolder folder;
  folder.write(".stint/agents/secret.md", kGood);
  fs::permissions(folder / ".stint/agents/secret.md", fs::perms::none);
  EXPECT_NE(said(blocking_discover(folder.path())).find("Permission denied"), std::string::npos);
}

TEST(Discovery, a_folder_that_is_a_file_is_reported) {
  const TestFolder folder;
  folder.write(".stint/agents", "x");
  EXPECT_NE(said(blocking_discover(folder.path())).find(".stint/agents: error: can't list"), std::string::npos);
}

TEST(Discovery, ten_thousand_files_are_bounded_and_reported) {
  const TestFolder folder;
  for (int i = 0; i < 10'000; ++i) folder.write(".claude/agents/a" + std::to_string(i) + ".md", kGood);
  folder.write(".stint/agents/own.md", kGood);
  const Catalogue found = blocking_discover(folder.path());
  EXPECT_EQ(found.agents.size(), kAgentFilesMax + 1);
  EXPECT_NE(found.find("own"), nullptr);
  EXPECT_NE(said(found).find(".claude/agents: error: more than 1000 agent files"), std::string::npos);
}

TEST(Discovery, the_system_prompt_is_found) {
  const TestFolder folder;
  folder.write(".coven/system.md", "theirs\n");
  EXPECT_EQ(blocking_discover(folder.path()).system_prompt, "theirs");
  folder.write(".stint/system.md", "\nours\n");
  EXPECT_EQ(blocking_discover(folder.path()).system_prompt, "ours");
}

TEST(Files, nothing_is_overwritten_by_create_and_nothing_left_half_by_replace) {
  const TestFolder folder;
  EXPECT_TRUE(blocking_create_file(folder / "a/b", "one"));
  EXPECT_EQ(blocking_create_file(folder / "a/b", "two").error(), Errc::conflict);
  fs::create_symlink("nowhere", folder / "a/link");
  EXPECT_EQ(blocking_create_file(folder / "a/link", "two").error(), Errc::conflict);
  EXPECT_FALSE(fs::exists(folder / "a/nowhere"));
  EXPECT_EQ(blocking_read_file(folder / "a/b", 3).value(), "one");
  EXPECT_EQ(blocking_read_file(folder / "a/b", 2).error(), Errc::invalid);
  EXPECT_TRUE(blocking_replace_private_file(folder / "a/b", "three"));
  EXPECT_EQ(blocking_read_file(folder / "a/b", 10).value(), "three");
  EXPECT_EQ(fs::status(folder / "a/b").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(blocking_list_folder(folder / "a", 10).value().names, (std::vector<std::string>{"b", "link"}));
}

}  // namespace
}  // namespace stint::agent
