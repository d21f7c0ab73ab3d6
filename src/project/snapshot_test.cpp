#include "project/snapshot.hpp"

#include "agent/test_folder.hpp"
#include "agent/trust.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace stint::project {
namespace {

/// A repository in a temporary folder, with host limits and tool rules that a test sets.
class SnapshotTest : public ::testing::Test {
 protected:
  SnapshotTest() {
    folder_.write("repo/.git/HEAD", "x");
    ports_.check_tools = [this](const domain::DriverDescriptor& driver, const domain::Agent&) -> Result<> {
      if (driver.name != cannot_keep_rules_) return {};
      return fail(Errc::invalid, "it can't enforce these rules");
    };
    ports_.blocking_look_at_limit = [this](const LimitDirectories&, const HostLimitUse& use) -> Result<HostLimitState> {
      if (use.name == impossible_) return fail(Errc::invalid, "there can be no such limit");
      HostLimitState state{.capacity = use.capacity, .unusable = {}};
      if (const auto resized = resized_.find(use.name); resized != resized_.end()) state.capacity = resized->second;
      if (use.name == unusable_) state.unusable = Error(Errc::denied, "its files can't be written");
      return state;
    };
  }

  void write_agent(const std::string& name, const std::string& frontmatter) const {
    folder_.write("repo/.stint/agents/" + name + ".md", "---\ndescription: d\n" + frontmatter + "---\nDo it.\n");
  }
  void write_settings(const std::string& text) const { folder_.write("repo/stint.toml", text); }
  void trust() const {
    const agent::Project project = agent::blocking_find_project(folder_ / "repo").value();
    ASSERT_TRUE(agent::blocking_trust(agent::user_places(location_.variables).value().state, project));
  }
  std::shared_ptr<const Snapshot> read(SnapshotOptions options = {}) const {
    return blocking_read_snapshot(location_, ports_, options).value();
  }
  static std::vector<std::string> limits_in_store(const domain::AgentEntry& entry) {
    std::vector<std::string> names;
    for (const domain::LimitUse& use : entry.limits) names.push_back(use.limit);
    std::ranges::sort(names);
    return names;
  }
  static std::string refusal(const AgentSpec& spec) { return spec.refused ? spec.refused->describe() : ""; }

  const agent::TestFolder folder_;
  const Location location_{folder_ / "repo", {{"HOME", (folder_ / "home").string()}}};
  SnapshotPorts ports_;
  std::string cannot_keep_rules_;  // the name of a driver
  std::string impossible_, unusable_;
  std::map<std::string, std::uint32_t> resized_;
};

TEST_F(SnapshotTest, has_the_agents_and_one_for_prompts_without_a_file) {
  write_agent("review", "");
  const auto snapshot = read();
  EXPECT_EQ(snapshot->registry.size(), 2U);
  EXPECT_TRUE(snapshot->registry.contains("review"));
  EXPECT_TRUE(snapshot->registry.contains(domain::kPromptAgent));
  EXPECT_EQ(refusal(snapshot->registry.at("review")), "");
  EXPECT_FALSE(snapshot->trusted);
}

TEST_F(SnapshotTest, a_wrong_setting_is_an_error) {
  write_settings("[pool]\nworkers = \"many\"\n");
  EXPECT_FALSE(blocking_read_snapshot(location_, ports_));
}

TEST_F(SnapshotTest, a_broken_file_keeps_its_former_agent) {
  write_agent("review", "max_concurrency: 2\n");
  const auto before = read();
  write_agent("review", "max_concurrency: two\n");
  EXPECT_FALSE(read()->registry.contains("review"));
  const auto after = read({.before = before.get()});
  ASSERT_TRUE(after->registry.contains("review"));
  EXPECT_EQ(after->registry.at("review").agent.max_concurrency, 2U);
  EXPECT_FALSE(after->registry.at("review").gone);
  EXPECT_EQ(after->host_limits.at("review"), before->host_limits.at("review"));
}

TEST_F(SnapshotTest, an_agent_without_its_file_stays_for_runs_that_were_accepted) {
  write_agent("review", "");
  const auto before = read();
  std::filesystem::remove(folder_ / "repo/.stint/agents/review.md");
  const auto after = read({.before = before.get()});
  ASSERT_TRUE(after->registry.contains("review"));
  EXPECT_TRUE(after->registry.at("review").gone);
  write_agent("review", "");
  EXPECT_FALSE(read({.before = after.get()})->registry.at("review").gone);
}

TEST_F(SnapshotTest, without_trust_an_agent_with_a_command_is_refused) {
  write_agent("build", "command: [make]\n");
  const auto before = read();
  EXPECT_TRUE(before->registry.at("build").refused.has_value());
  EXPECT_EQ(*before->registry.at("build").refused, Errc::denied);
  EXPECT_FALSE(blocking_trust_changed(location_, *before));
  trust();
  EXPECT_TRUE(blocking_trust_changed(location_, *before));
  const auto after = read({.before = before.get()});
  EXPECT_TRUE(after->trusted);
  EXPECT_EQ(refusal(after->registry.at("build")), "");
  EXPECT_FALSE(blocking_trust_changed(location_, *after));
}

TEST_F(SnapshotTest, after_a_crash_a_conversation_resumes_and_a_command_is_in_doubt_by_default) {
  trust();
  write_agent("talks", "driver: claude\n");
  write_agent("build", "command: [make]\n");
  write_agent("again", "driver: claude\non_crash: rerun\n");
  const auto snapshot = read();
  EXPECT_EQ(snapshot->registry.at("talks").on_crash, domain::OnCrash::resume);
  EXPECT_EQ(snapshot->registry.at("build").on_crash, domain::OnCrash::doubt);
  EXPECT_EQ(snapshot->registry.at("again").on_crash, domain::OnCrash::rerun);
}

TEST_F(SnapshotTest, the_account_is_that_of_the_model_or_else_of_the_driver) {
  trust();
  write_settings("[models.house]\naccount = \"team\"\n");
  write_agent("plain", "driver: claude\n");
  write_agent("house", "driver: claude\nmodel: house\n");
  write_agent("build", "command: [make]\n");
  const auto snapshot = read();
  EXPECT_EQ(snapshot->registry.at("plain").account, "account:anthropic");
  EXPECT_EQ(snapshot->registry.at("house").account, "account:team");
  EXPECT_EQ(snapshot->registry.at("build").account, "");
  // So that each can be paused.
  EXPECT_EQ(limits_in_store(snapshot->registry.at("plain").entry),
            (std::vector<std::string>{"account:anthropic", "agent:plain"}));
  EXPECT_EQ(limits_in_store(snapshot->registry.at("build").entry), std::vector<std::string>{"agent:build"});
}

TEST_F(SnapshotTest, a_run_whose_driver_is_chosen_uses_the_account_of_that_driver) {
  write_agent("plain", "driver: claude\n");
  const auto snapshot = read();
  const AgentSpec& spec = snapshot->registry.at("plain");
  EXPECT_EQ(name_in_store(spec, "", ""), "plain");
  const std::string variant = name_in_store(spec, "codex", "");
  EXPECT_EQ(variant, "plain@openai");
  EXPECT_EQ(limits_in_store(spec.variants.at(variant).entry),
            (std::vector<std::string>{"account:openai", "agent:plain"}));
  const auto names = names_in_store(*snapshot);
  EXPECT_NE(std::ranges::find(names, variant), names.end());
}

TEST_F(SnapshotTest, host_limits_are_taken_with_weight_and_capacity) {
  write_settings("[limits]\ngpu = 4\nhost = 8\n");
  write_agent("train", "max_concurrency: 2\nlimits: [{name: gpu, weight: 3}]\n");
  const auto snapshot = read();
  EXPECT_EQ(snapshot->host_limits.at("train"),
            (std::vector<HostLimitUse>{{"agent:train", 1, 2}, {"gpu", 3, 4}, {"host", 1, 8}}));
  EXPECT_TRUE(snapshot->cluster_limits.empty());
}

TEST_F(SnapshotTest, a_shared_store_counts_all_limits_but_those_of_the_host) {
  write_settings("[limits]\ngpu = 4\nhost = 8\ndisk = {capacity = 3, reach = \"host\"}\n");
  write_agent("train", "max_concurrency: 2\nlimits: [gpu, disk]\n");
  const auto snapshot = read({.cluster = true});
  EXPECT_EQ(snapshot->cluster_limits, (std::map<std::string, std::uint32_t>{{"agent:train", 2}, {"gpu", 4}}));
  EXPECT_EQ(snapshot->host_limits.at("train"), (std::vector<HostLimitUse>{{"disk", 1, 3}, {"host", 1, 8}}));
}

TEST_F(SnapshotTest, process_limits_count_calls_and_no_run_takes_them) {
  write_settings("[limits]\ncalls = {capacity = 4, reach = \"process\"}\nhost = {capacity = 8, reach = \"process\"}\n");
  write_agent("train", "limits: [calls]\n");
  write_agent("plain", "");
  for (const bool cluster : {false, true}) {
    const auto snapshot = read({.cluster = cluster});
    EXPECT_EQ(snapshot->process_limits, (std::map<std::string, std::uint32_t>{{"calls", 4}}));
    EXPECT_TRUE(snapshot->cluster_limits.empty());
    EXPECT_EQ(snapshot->host_limits.at("train"), (std::vector<HostLimitUse>{{"host", 1, 8}}));
    EXPECT_NE(refusal(snapshot->registry.at("train")).find("makes none there"), std::string::npos)
        << "the limit would never be counted";
    EXPECT_EQ(refusal(snapshot->registry.at("plain")), "");
  }
}

TEST_F(SnapshotTest, the_model_decides_the_account_of_a_driver_that_calls_it) {
  ports_.find_model = [](const agent::Settings&, const std::string& model) -> std::optional<FoundModel> {
    if (model.empty()) return std::nullopt;
    return FoundModel{.account = "account:" + model.substr(0, model.find('/')), .price = {.input = 3}};
  };
  write_settings("[models.\"local/other\"]\nprice = {input = 1.0, output = 1.0}\n");
  write_agent("talk", "driver: llm\nmodel: openai/gpt-5\n");
  const auto snapshot = read();
  const AgentSpec& spec = snapshot->registry.at("talk");
  EXPECT_EQ(refusal(spec), "");
  EXPECT_EQ(spec.account, "account:openai");
  EXPECT_EQ(limits_in_store(spec.entry), (std::vector<std::string>{"account:openai", "agent:talk"}));
  EXPECT_EQ(name_in_store(spec, "", "local/other"), variant_name("talk", "account:local"));
  EXPECT_TRUE(price_of(spec.prices, "openai/gpt-5", "llm").known());
  EXPECT_EQ(spec.on_crash, domain::OnCrash::resume);
}

TEST_F(SnapshotTest, a_limit_without_a_capacity_refuses_its_agent) {
  write_agent("train", "limits: [gpu]\n");
  EXPECT_NE(refusal(read()->registry.at("train")).find("'gpu' is defined nowhere"), std::string::npos);
}

TEST_F(SnapshotTest, a_weight_above_the_capacity_in_force_refuses_its_agent) {
  write_settings("[limits]\ngpu = 4\n");
  write_agent("train", "limits: [{name: gpu, weight: 3}]\n");
  EXPECT_EQ(refusal(read()->registry.at("train")), "");
  resized_["gpu"] = 2;
  EXPECT_NE(refusal(read()->registry.at("train")).find("weight 3 is more than its capacity, 2"), std::string::npos);
}

TEST_F(SnapshotTest, a_limit_whose_files_cannot_be_written_refuses_its_agent) {
  write_settings("[limits]\ngpu = 4\n");
  write_agent("train", "limits: [gpu]\n");
  write_agent("other", "");
  unusable_ = "gpu";
  const auto snapshot = read();
  EXPECT_NE(refusal(snapshot->registry.at("train")).find("can't be written"), std::string::npos);
  EXPECT_EQ(refusal(snapshot->registry.at("other")), "");
  EXPECT_EQ(snapshot->unusable, (std::vector<HostLimitUse>{{"gpu", 1, 4}}));
  unusable_.clear();
  EXPECT_TRUE(read({.before = snapshot.get()})->unusable.empty());
}

TEST_F(SnapshotTest, an_invalid_limit_refuses_its_agent_and_is_not_taken) {
  write_settings("[limits]\ngpu = 4\n");
  write_agent("train", "limits: [gpu]\n");
  impossible_ = "gpu";
  const auto snapshot = read();
  EXPECT_NE(refusal(snapshot->registry.at("train")).find("no such limit"), std::string::npos);
  EXPECT_FALSE(snapshot->host_limits.contains("train"));
}

TEST_F(SnapshotTest, rules_for_tools_that_a_driver_cannot_enforce_refuse_that_driver) {
  write_agent("plain", "driver: claude\n");
  cannot_keep_rules_ = "gemini";
  const auto snapshot = read();
  EXPECT_EQ(refusal(snapshot->registry.at("plain")), "");
  EXPECT_TRUE(snapshot->registry.at("plain").refused_drivers.contains("gemini"));
  cannot_keep_rules_ = "claude";
  EXPECT_NE(refusal(read()->registry.at("plain")).find("can't enforce"), std::string::npos);
}

TEST_F(SnapshotTest, accounts_crashes_and_trust_follow_the_descriptor_of_the_driver) {
  write_agent("plain", "driver: claude\n");
  for (const domain::DriverDescriptor& driver : domain::kDrivers) {
    const std::string name(driver.name);
    write_agent("by-" + name, "driver: " + name + "\n" + (driver.runs_command ? "command: [./x]\n" : ""));
  }
  const auto snapshot = read();
  const AgentSpec& plain = snapshot->registry.at("plain");
  for (const domain::DriverDescriptor& driver : domain::kDrivers) {
    SCOPED_TRACE(driver.name);
    const AgentSpec& spec = snapshot->registry.at("by-" + std::string(driver.name));
    EXPECT_EQ(spec.account, driver.account);
    EXPECT_EQ(spec.on_crash, driver.resumes ? domain::OnCrash::resume : domain::OnCrash::doubt);
    EXPECT_EQ(refusal(spec).empty(), !driver.always_reads_checkout && !driver.runs_command) << refusal(spec);
    EXPECT_EQ(plain.driver_accounts.at(std::string(driver.name)), driver.account);
    EXPECT_EQ(plain.refused_drivers.contains(driver.name), driver.always_reads_checkout);
  }
  EXPECT_EQ(plain.driver_accounts.size(), domain::kDrivers.size());
}

TEST_F(SnapshotTest, budgets_and_queue_have_the_defaults_of_the_settings) {
  write_settings("[budget]\nattempts = 5\n[pool]\nqueue = 7\n");
  write_agent("plain", "");
  write_agent("own", "budget: {attempts: 2}\n");
  const auto snapshot = read();
  EXPECT_EQ(snapshot->registry.at("plain").budget.attempts, 5);
  EXPECT_EQ(snapshot->registry.at("own").budget.attempts, 2);
  EXPECT_EQ(snapshot->registry.at("plain").entry.queued_max, 7U);
}

TEST_F(SnapshotTest, problems_of_an_agent_are_those_of_its_file_and_of_the_settings) {
  write_settings("colour = 1\n");
  write_agent("plain", "colour: red\n");
  write_agent("other", "colour: red\n");
  const auto snapshot = read();
  const auto problems = problems_of("plain", snapshot->catalogue, snapshot->checkout.warnings);
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_NE(problems[1].file.find("plain.md"), std::string::npos);
}

}  // namespace
}  // namespace stint::project
