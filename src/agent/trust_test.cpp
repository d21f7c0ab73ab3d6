#include "agent/trust.hpp"

#include "agent/test_folder.hpp"

#include <gtest/gtest.h>

namespace stint::agent {
namespace {

namespace fs = std::filesystem;

class Trust : public ::testing::Test {
 protected:
  Trust() {
    folder_.write("repo/.git/HEAD", "x");
    folder_.write("repo/.git/worktrees/wt/HEAD", "x");
    folder_.write("repo/.git/worktrees/wt/commondir", "../..");
    folder_.write("repo/.git/worktrees/wt/gitdir", (folder_ / "wt/.git").string());
    folder_.write("wt/.git", "gitdir: " + (folder_ / "repo/.git/worktrees/wt").string());
    folder_.write("other/.git/HEAD", "x");
  }
  Project project(std::string_view name) const { return blocking_find_project(folder_ / name).value(); }
  bool trusted(std::string_view name) const { return blocking_is_trusted(state_, project(name)).value(); }

  TestFolder folder_;
  const fs::path state_ = folder_ / "state";
};

TEST_F(Trust, nothing_is_trusted_by_default) {
  EXPECT_FALSE(trusted("repo"));
  EXPECT_TRUE(blocking_list_trust(state_).value().empty());
  EXPECT_FALSE(blocking_revoke_trust(state_, project("repo")).value());
}

TEST_F(Trust, covers_the_repository_and_its_worktrees_and_nothing_else) {
  ASSERT_TRUE(blocking_trust(state_, project("wt")));
  EXPECT_TRUE(trusted("repo"));
  EXPECT_TRUE(trusted("wt"));
  EXPECT_FALSE(trusted("other"));
  ASSERT_TRUE(blocking_trust(state_, project("repo")));  // repeating it is harmless
  ASSERT_EQ(blocking_list_trust(state_).value().size(), 1U);
  EXPECT_EQ(blocking_list_trust(state_).value()[0].identity, folder_ / "repo/.git");
}

TEST_F(Trust, ends_when_it_is_revoked) {
  ASSERT_TRUE(blocking_trust(state_, project("repo")));
  ASSERT_TRUE(blocking_trust(state_, project("other")));
  EXPECT_TRUE(blocking_revoke_trust(state_, project("repo")).value());
  EXPECT_FALSE(trusted("repo"));
  EXPECT_TRUE(trusted("other"));
}

TEST_F(Trust, ends_when_another_repository_takes_the_path) {
  ASSERT_TRUE(blocking_trust(state_, project("repo")));
  fs::rename(folder_ / "repo", folder_ / "moved");  // kept, so that its inode is not reused
  folder_.write("repo/.git/HEAD", "x");
  EXPECT_FALSE(trusted("repo"));
  EXPECT_FALSE(trusted("moved"));
  EXPECT_FALSE(blocking_list_trust(state_).value().at(0).holds);
}

TEST_F(Trust, ends_when_the_repository_is_recreated) {
  for (int i = 0; i < 10; ++i) {  // the next folder often gets the inode of the last
    ASSERT_TRUE(blocking_trust(state_, project("repo")));
    fs::remove_all(folder_ / "repo");
    folder_.write("repo/.git/HEAD", "x");
    EXPECT_FALSE(trusted("repo"));
  }
}

TEST_F(Trust, a_program_is_allowed_by_its_whole_name) {
  EXPECT_FALSE(blocking_is_program_allowed(state_, "/bin/x"));
  ASSERT_TRUE(blocking_allow_program(state_, "/bin/x"));
  EXPECT_TRUE(blocking_is_program_allowed(state_, "/bin/x"));
  EXPECT_FALSE(blocking_is_program_allowed(state_, "/bin/x2"));
  EXPECT_FALSE(blocking_is_program_allowed(state_, ""));
}

TEST_F(Trust, a_folder_is_allowed_until_it_is_recreated) {
  EXPECT_FALSE(blocking_is_folder_allowed(state_, folder_ / "other").value());
  ASSERT_TRUE(blocking_allow_folder(state_, folder_ / "other"));
  ASSERT_TRUE(blocking_allow_folder(state_, folder_ / "other"));
  EXPECT_TRUE(blocking_is_folder_allowed(state_, folder_ / "other").value());
  EXPECT_FALSE(blocking_is_folder_allowed(state_, folder_ / "repo").value());
  EXPECT_FALSE(trusted("other")) << "running something there does not trust it";
  fs::rename(folder_ / "other", folder_ / "moved");
  fs::create_directories(folder_ / "other");
  EXPECT_FALSE(blocking_is_folder_allowed(state_, folder_ / "other").value());
}

TEST_F(Trust, records_of_folders_that_are_gone_do_not_pile_up) {
  fs::create_directories(folder_ / "kept");
  ASSERT_TRUE(blocking_allow_folder(state_, folder_ / "kept"));
  for (std::size_t i = 0; i <= kFolderRecordsMax; ++i) folder_.write("state/folders/" + std::to_string(i), "1 1 /gone");
  ASSERT_TRUE(blocking_allow_folder(state_, folder_ / "repo"));
  EXPECT_TRUE(blocking_is_folder_allowed(state_, folder_ / "repo").value());
  EXPECT_LT(std::distance(fs::directory_iterator(state_ / "folders"), {}), 10);
  // At most this many are visited, in no particular order; records of existing folders stay.
  EXPECT_TRUE(blocking_is_folder_allowed(state_, folder_ / "kept").value());
}

TEST_F(Trust, homes_of_agents_lie_below_the_users_state_and_belong_to_one_repository) {
  const fs::path first = blocking_find_homes_of_agents(state_, project("repo")).value();
  EXPECT_EQ(first.parent_path(), state_ / "homes");
  EXPECT_EQ(blocking_find_homes_of_agents(state_, project("wt")).value(), first);
  EXPECT_NE(blocking_find_homes_of_agents(state_, project("other")).value(), first);
  fs::rename(folder_ / "repo", folder_ / "moved");
  folder_.write("repo/.git/HEAD", "x");
  EXPECT_NE(blocking_find_homes_of_agents(state_, project("repo")).value(), first);
}

TEST_F(Trust, a_record_writable_by_others_is_refused) {
  ASSERT_TRUE(blocking_trust(state_, project("repo")));
  const fs::path record = fs::directory_iterator(state_ / "trust")->path();
  fs::permissions(record, fs::perms::others_write, fs::perm_options::add);
  const auto answer = blocking_is_trusted(state_, project("repo"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error(), Errc::denied);
}

TEST_F(Trust, a_damaged_record_is_refused) {
  ASSERT_TRUE(blocking_trust(state_, project("repo")));
  const fs::path record = fs::directory_iterator(state_ / "trust")->path();
  for (const char* const text : {"", "12", "x /a", "12\n/a", "12 /a", "12 13", "12 x /a"}) {
    std::ofstream(record) << text;
    EXPECT_FALSE(blocking_is_trusted(state_, project("repo"))) << text;
  }
  std::ofstream(record) << "1 2 /somewhere/else";
  EXPECT_FALSE(trusted("repo"));
}

TEST_F(Trust, a_record_of_another_project_does_not_count) {
  ASSERT_TRUE(blocking_trust(state_, project("repo")));
  const fs::path record = fs::directory_iterator(state_ / "trust")->path();
  ASSERT_TRUE(blocking_trust(state_, project("other")));
  for (const fs::directory_entry& entry : fs::directory_iterator(state_ / "trust")) {
    if (entry.path() != record) fs::copy_file(entry.path(), record, fs::copy_options::overwrite_existing);
  }
  EXPECT_FALSE(trusted("repo"));  // as if the names of both records were the same
  EXPECT_TRUE(trusted("other"));
}

TEST_F(Trust, outside_a_repository_it_belongs_to_the_folder) {
  fs::create_directories(folder_ / "plain/.stint");
  fs::create_directories(folder_ / "plain/sub");
  ASSERT_TRUE(blocking_trust(state_, project("plain/sub")));
  EXPECT_TRUE(trusted("plain"));
}

TEST(TrustedThings, cover_everything_a_checkout_would_run_or_send_keys_to) {
  Catalogue catalogue;
  domain::Agent agent;
  agent.name = "a";
  agent.file = "a.md";
  agent.command = {{"./x", 1}, {"{{pr}}", 1}};
  catalogue.agents.push_back(agent);
  agent.command.clear();
  agent.driver = domain::find_driver("claude");
  catalogue.agents.push_back(agent);
  agent.driver_args = {"--mcp-config", "evil.json"};
  catalogue.agents.push_back(agent);
  agent.driver_args.clear();
  agent.permissions = domain::Permissions::full;
  catalogue.agents.push_back(agent);
  agent.permissions = domain::Permissions::read;
  agent.driver = domain::find_driver("codex");
  catalogue.agents.push_back(agent);
  const std::string project =
      "store = \"memory\"\n[land]\ngate = [\"./dev\", \"check\"]\n[models.\"a/b\"]\nendpoint = "
      "\"https://evil.example\"\n";
  const LoadedSettings loaded = read_settings({{{OriginKind::project, "stint.toml", project},
                                                {OriginKind::user, "config.toml", "[accounts.x]\nkey_env = \"K\"\n"}},
                                               {},
                                               {}});
  std::string all;
  for (const TrustedThing& thing : things_that_need_trust(catalogue, loaded.settings))
    all += thing.where + ": " + thing.what + "\n";
  EXPECT_EQ(all,
            "a.md: ./x {{pr}}\na.md: claude --mcp-config evil.json\n"
            "a.md: claude with permissions: full, which runs everything without asking\n"
            "a.md: codex, which starts the hooks and MCP servers that this checkout names\nstint.toml:3: ./dev check\n"
            "stint.toml:5: models.\"a/b\".endpoint = https://evil.example\n");
  EXPECT_EQ(untrusted({"/p", {}, {}}, {"./x", "a.md"}).what(),
            "/p is not trusted, and a.md asks for: ./x. Review it, then run `stint trust` there");
}

}  // namespace
}  // namespace stint::agent
