#include "model/provider_choice.hpp"

#include "model/provider_table.hpp"
#include "os/private_file.hpp"
#include "os/test_folder.hpp"

#include <gtest/gtest.h>

namespace stint::model {
namespace {

class ProviderChoiceTest : public ::testing::Test {
 protected:
  static agent::Settings settings_of(std::string text) {
    agent::SettingsSources sources;
    sources.files.push_back({.kind = agent::OriginKind::user, .file = "config.toml", .text = std::move(text)});
    agent::LoadedSettings loaded = agent::read_settings(sources);
    EXPECT_TRUE(loaded.problems.empty());
    return std::move(loaded.settings);
  }
  const agent::Settings settings_ = settings_of(R"(
[accounts.team]
key_env = "TEAM_KEY"
[models."anthropic/claude-sonnet-4"]
account = "team"
price = {input = 3.0, output = 15.0}
[models."anthropic/claude-opus-4"]
price = {input = 5.0, output = 25.0}
[models."local/qwen"]
endpoint = "http://localhost:11434/v1"
[models."openai/gpt-4o"]
endpoint = "http://10.0.0.5:8000"
[models."azure/gpt-4o-mini"]
account = "team"
endpoint = "http://example.test"
)");
};

TEST_F(ProviderChoiceTest, a_name_or_a_word_of_the_settings) {
  for (const char* const name : {"anthropic/claude-sonnet-4", "claude-sonnet-4", "sonnet"}) {
    const auto choice = choose_provider(settings_, name);
    ASSERT_TRUE(choice) << choice.error().describe();
    EXPECT_EQ(choice->dialect, Dialect::anthropic);
    EXPECT_EQ(choice->model, "claude-sonnet-4");
    EXPECT_EQ(choice->endpoint, "https://api.anthropic.com");
    EXPECT_EQ(choice->account, "account:team");
    EXPECT_EQ(choice->credential.key_env, "TEAM_KEY");
    EXPECT_EQ(choice->price.output, 15'000'000);
    EXPECT_FALSE(choice->cache_reads_count);
    EXPECT_EQ(choice->upstream_key().account, "account:team");
  }
}

TEST_F(ProviderChoiceTest, a_model_that_the_settings_do_not_name) {
  const auto full = choose_provider(settings_, "openai/gpt-5");
  ASSERT_TRUE(full) << full.error().describe();
  EXPECT_EQ(full->dialect, Dialect::responses);
  EXPECT_EQ(full->credential.key_env, "OPENAI_API_KEY");
  EXPECT_EQ(full->account, "account:openai");
  const auto guessed = choose_provider(settings_, "gemini-2.5-pro");
  ASSERT_TRUE(guessed);
  EXPECT_EQ(guessed->dialect, Dialect::gemini);
  EXPECT_FALSE(guessed->price.known());
}

TEST_F(ProviderChoiceTest, a_server_of_ones_own_gets_no_key_that_is_not_its) {
  const auto local = choose_provider(settings_, "local/qwen");
  ASSERT_TRUE(local) << local.error().describe();
  EXPECT_EQ(local->dialect, Dialect::chat);
  EXPECT_TRUE(local->compatible_server);
  EXPECT_FALSE(local->credential.is_required);
  const auto copy = choose_provider(settings_, "openai/gpt-4o");
  ASSERT_TRUE(copy) << copy.error().describe();
  EXPECT_EQ(copy->dialect, Dialect::chat);
  EXPECT_EQ(copy->credential.key_env, "") << "the key of the provider itself must not go to another server";
}

TEST_F(ProviderChoiceTest, mistakes_are_named) {
  EXPECT_EQ(choose_provider(settings_, "claude").error(), Errc::invalid) << "two models";
  EXPECT_NE(choose_provider(settings_, "claude").error().what().find("claude-opus-4"), std::string_view::npos);
  EXPECT_EQ(choose_provider(settings_, "").error(), Errc::invalid);
  EXPECT_EQ(choose_provider(settings_, "unknown").error(), Errc::invalid);
  EXPECT_EQ(choose_provider(settings_, "nowhere/model").error(), Errc::invalid);
  EXPECT_EQ(choose_provider(settings_, "azure/gpt-4o-mini").error(), Errc::denied) << "a key over plain HTTP";
}

TEST_F(ProviderChoiceTest, keys_come_from_the_environment_or_a_private_file) {
  const auto from_env = blocking_read_credential({.key_env = "KEY"}, {{"KEY", " secret \n"}});
  ASSERT_TRUE(from_env);
  EXPECT_EQ(from_env->reveal(), "secret");
  const os::TestFolder folder;
  ASSERT_TRUE(os::blocking_write_private(folder / "key", "filed\n"));
  EXPECT_EQ(blocking_read_credential({.key_file = folder / "key"}, {})->reveal(), "filed");
  folder.write("open", "leaked");
  std::filesystem::permissions(folder / "open", std::filesystem::perms(0644));
  const auto open = blocking_read_credential({.key_file = folder / "open"}, {});
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error(), Errc::denied);
  EXPECT_EQ(open.error().describe().find("leaked"), std::string::npos);
}

TEST_F(ProviderChoiceTest, a_missing_key_names_its_place) {
  const auto missing = blocking_read_credential({.key_env = "KEY"}, {});
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().what().find("KEY"), std::string_view::npos);
  EXPECT_FALSE(blocking_read_credential({}, {}));
  const auto own = blocking_read_credential({.is_required = false}, {});
  ASSERT_TRUE(own);
  EXPECT_TRUE(own->empty());
  EXPECT_FALSE(blocking_read_credential({.key_env = "KEY"}, {{"KEY", "two\nlines"}}));
}

TEST(ProviderTable, finds_by_name) {
  for (const ProviderRow& row : provider_table()) EXPECT_EQ(find_provider(row.name), &row);
  EXPECT_EQ(find_provider("none"), nullptr);
}

}  // namespace
}  // namespace stint::model
