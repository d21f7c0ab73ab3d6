#include "project/attempt_planner.hpp"

#include "agent/test_folder.hpp"
#include "agent/trust.hpp"
#include "stint/scope.hpp"
#include "stint/testing.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace stint::project {
namespace {

using Changes = std::vector<std::string>;

/// The pool must have no threads: its calls run in place.
Result<domain::AttemptSpec> run(Task<Result<domain::AttemptSpec>> plan) {
  Simulator sim;
  RootScope scope(sim);
  std::optional<Result<domain::AttemptSpec>> planned;
  auto body = [&]() -> Task<> { planned.emplace(co_await std::move(plan)); };
  scope.spawn(body());
  sim.settle();
  return std::move(planned).value();
}

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

TEST(UntrustedEnvironment, runs_no_program_from_the_checkout) {
  const Changes git{"GIT_CONFIG_KEY_0=core.fsmonitor",
                    "GIT_CONFIG_VALUE_0=false",
                    "GIT_CONFIG_KEY_1=core.hooksPath",
                    "GIT_CONFIG_VALUE_1=/dev/null",
                    "GIT_CONFIG_KEY_2=diff.ignoreSubmodules",
                    "GIT_CONFIG_VALUE_2=all",
                    "GIT_CONFIG_COUNT=3"};
  EXPECT_EQ(untrusted_environment({{"PATH", "/bin:/usr/bin"}}), git);
  EXPECT_EQ(untrusted_environment({{"PATH", "./node_modules/.bin:/bin::bin:.:/usr/bin:"}})[0], "PATH=/bin:/usr/bin");
  const Changes further = untrusted_environment({{"PATH", "/bin"}, {"GIT_CONFIG_COUNT", "2"}});
  EXPECT_EQ(further.front(), "GIT_CONFIG_KEY_2=core.fsmonitor");
  EXPECT_EQ(further.back(), "GIT_CONFIG_COUNT=5");
  const Changes modules = untrusted_environment({{"PATH", "/bin"}}, {"a/b"});
  EXPECT_EQ(modules.at(6), "GIT_CONFIG_KEY_3=submodule.a/b.ignore");
}

TEST(AttemptPlanner, a_home_for_each_permit_is_named_by_the_variable_of_the_driver) {
  const agent::TestFolder folder;
  folder.write("repo/.git/HEAD", "x");
  const Location location{folder / "repo", {{"HOME", (folder / "home").string()}}};
  for (const domain::DriverDescriptor& driver : domain::kDrivers) {
    if (driver.home_variable.empty()) continue;
    const std::string command = driver.runs_command ? "command: [./x]\n" : "";
    folder.write(fmt::format("repo/.stint/agents/by-{}.md", driver.name),
                 fmt::format("---\ndescription: d\nhome: slot\nmax_concurrency: 4\ndriver: {}\n{}---\nDo it.\n",
                             driver.name, command));
  }
  const agent::Project project = agent::blocking_find_project(folder / "repo").value();
  ASSERT_TRUE(agent::blocking_trust(agent::user_places(location.variables).value().state, project));
  SnapshotPorts ports;
  ports.check_tools = [](const domain::DriverDescriptor&, const domain::Agent&) -> Result<> { return {}; };
  ports.blocking_look_at_limit = [](const LimitDirectories&, const HostLimitUse& use) -> Result<HostLimitState> {
    return HostLimitState{.capacity = use.capacity, .unusable = {}};
  };
  const auto snapshot = blocking_read_snapshot(location, ports).value();
  BlockingPool files("files", 0);
  AttemptPlanner planner(files, [&] { return snapshot; }, {});
  for (const domain::DriverDescriptor& driver : domain::kDrivers) {
    if (driver.home_variable.empty()) continue;
    domain::WorkOrder order;
    order.agent = fmt::format("by-{}", driver.name);
    order.slot = 3;
    const auto spec = run(planner.plan(order));
    ASSERT_TRUE(spec) << spec.error().describe();
    EXPECT_EQ(spec->driver, driver.name);
    const std::string& last = spec->environment.back();
    EXPECT_TRUE(last.starts_with(std::string(driver.home_variable) + "=/")) << last;
    EXPECT_TRUE(last.ends_with(order.agent + "/3")) << last;
  }
}

/// A repository with an agent, and a planner that reads the repository again for each plan.
class AttemptPlannerTest : public ::testing::Test {
 protected:
  AttemptPlannerTest() {
    folder_.write("repo/.git/HEAD", "x");
    write_agent("review", "args: [pr]\ndriver: claude\nmodel: opus\n", "Review {{ pr }}.");
    ports_.check_tools = [](const domain::DriverDescriptor&, const domain::Agent&) { return Result<>(); };
    ports_.blocking_look_at_limit = [](const LimitDirectories&, const HostLimitUse& use) -> Result<HostLimitState> {
      return HostLimitState{.capacity = use.capacity, .unusable = {}};
    };
    order_.run = "abc";
    order_.fence = domain::Fence{2};
    order_.agent = "review";
    order_.input.args["pr"] = {"42"};
  }

  void write_agent(const std::string& name, const std::string& frontmatter, const std::string& prompt) const {
    folder_.write("repo/.stint/agents/" + name + ".md",
                  "---\ndescription: d\n" + frontmatter + "---\n" + prompt + "\n");
  }
  void trust() const {
    const agent::Project project = agent::blocking_find_project(folder_ / "repo").value();
    ASSERT_TRUE(agent::blocking_trust(agent::user_places(location_.variables).value().state, project));
  }
  Result<domain::AttemptSpec> plan(AttemptPlanner::Options options = {}) const {
    const auto snapshot = blocking_read_snapshot(location_, ports_).value();
    BlockingPool files("files", 0);
    AttemptPlanner planner(files, [snapshot] { return snapshot; }, std::move(options));
    return run(planner.plan(order_));
  }
  std::string refusal() const {
    const auto planned = plan();
    return planned ? "" : planned.error().describe();
  }

  const agent::TestFolder folder_;
  const Location location_{folder_ / "repo", {{"HOME", (folder_ / "home").string()}}};
  SnapshotPorts ports_;
  domain::WorkOrder order_;
};

TEST_F(AttemptPlannerTest, reads_files_only_in_the_blocking_pool) {
  const auto snapshot = blocking_read_snapshot(location_, ports_).value();
  BlockingPool files("files", 0);
  files.close();
  AttemptPlanner planner(files, [snapshot] { return snapshot; }, {});
  order_.input.directory = "gone";  // a plan that looks for it fails otherwise
  EXPECT_EQ(run(planner.plan(order_)).error(), Errc::closed);
}

TEST_F(AttemptPlannerTest, renders_the_prompt_and_takes_the_settings_of_the_agent_file) {
  const auto planned = plan();
  ASSERT_TRUE(planned) << planned.error().describe();
  EXPECT_EQ(planned->driver, "claude");
  EXPECT_EQ(planned->invocation.prompt, "Review 42.");
  EXPECT_EQ(planned->invocation.model, "opus");
  EXPECT_EQ(planned->directory, std::filesystem::canonical(folder_ / "repo").string());
  EXPECT_FALSE(planned->invocation.reads_checkout) << "an untrusted checkout is not read";
  trust();
  EXPECT_TRUE(plan()->invocation.reads_checkout);
}

TEST_F(AttemptPlannerTest, a_prompt_of_the_caller_is_not_a_template) {
  order_.input.prompt = "Say {{ pr }}";
  order_.input.model = "sonnet";
  const auto planned = plan();
  ASSERT_TRUE(planned) << planned.error().describe();
  EXPECT_EQ(planned->invocation.prompt, "Say {{ pr }}");
  EXPECT_EQ(planned->invocation.model, "sonnet");
}

TEST_F(AttemptPlannerTest, a_continued_conversation_gets_the_interruption_and_not_the_task_again) {
  order_.conversation = "c-1";
  order_.interrupted = "the process that carried it was lost";
  order_.usage_before.out = 30;
  order_.budget.tokens = 100;
  order_.left.tokens = 70;
  const auto planned = plan();
  ASSERT_TRUE(planned) << planned.error().describe();
  EXPECT_EQ(planned->invocation.conversation, "c-1");
  EXPECT_NE(planned->invocation.prompt.find("the process that carried it was lost"), std::string::npos);
  EXPECT_EQ(planned->invocation.prompt.find("Review"), std::string::npos);
  EXPECT_EQ(planned->invocation.usage_before.out, 30);
  EXPECT_EQ(planned->invocation.tokens_max, 70) << "what is left of the budget";
}

TEST_F(AttemptPlannerTest, only_folders_of_the_checkout_are_allowed) {
  std::filesystem::create_directories(folder_ / "repo/sub");
  std::filesystem::create_directories(folder_ / "elsewhere");
  order_.input.directory = "sub";
  EXPECT_EQ(plan()->directory, std::filesystem::canonical(folder_ / "repo/sub").string());
  order_.input.directory = (folder_ / "elsewhere").string();
  EXPECT_NE(refusal().find("a store must not choose where an agent works"), std::string::npos) << refusal();
  order_.input.directory = "../elsewhere";
  EXPECT_NE(refusal().find("a store must not choose where an agent works"), std::string::npos) << refusal();
  order_.input.directory = "gone";
  EXPECT_NE(refusal().find("does not exist any more"), std::string::npos) << refusal();
}

/// Nothing about files is remembered between two plans of one snapshot: what a plan allows is checked when it is made.
TEST_F(AttemptPlannerTest, a_folder_is_looked_at_again_for_each_plan) {
  const auto snapshot = blocking_read_snapshot(location_, ports_).value();
  BlockingPool files("files", 0);
  AttemptPlanner planner(files, [snapshot] { return snapshot; }, {});
  std::filesystem::create_directories(folder_ / "repo/sub");
  std::filesystem::create_directories(folder_ / "elsewhere");
  order_.input.directory = "sub";
  EXPECT_EQ(run(planner.plan(order_))->directory, std::filesystem::canonical(folder_ / "repo/sub").string());
  std::filesystem::remove(folder_ / "repo/sub");
  EXPECT_EQ(run(planner.plan(order_)).error(), Errc::invalid) << "it is gone";
  std::filesystem::create_directory_symlink(folder_ / "elsewhere", folder_ / "repo/sub");
  EXPECT_EQ(run(planner.plan(order_)).error(), Errc::denied) << "it leads out of the checkout";
}

TEST_F(AttemptPlannerTest, trust_in_another_checkout_ends_with_its_record) {
  write_agent("build", "command: [make]\n", "");
  trust();
  folder_.write("other/.git/HEAD", "x");
  const agent::Project other = agent::blocking_find_project(folder_ / "other").value();
  const auto state = agent::user_places(location_.variables).value().state;
  const std::string there = std::filesystem::canonical(folder_ / "other").string();
  ASSERT_TRUE(agent::blocking_allow_folder(state, there));
  ASSERT_TRUE(agent::blocking_trust(state, other));
  const auto snapshot = blocking_read_snapshot(location_, ports_).value();
  BlockingPool files("files", 0);
  AttemptPlanner planner(files, [snapshot] { return snapshot; }, {});
  order_.agent = "build";
  order_.input.args.clear();
  order_.input.directory = there;
  const auto planned = run(planner.plan(order_));
  ASSERT_TRUE(planned) << planned.error().describe();
  EXPECT_TRUE(planned->invocation.reads_checkout);
  ASSERT_TRUE(agent::blocking_revoke_trust(state, other));
  EXPECT_EQ(run(planner.plan(order_)).error(), Errc::denied);
  ASSERT_TRUE(agent::blocking_trust(state, other));
  std::filesystem::remove_all(folder_ / "other");
  folder_.write("other/.git/HEAD", "x");
  EXPECT_EQ(run(planner.plan(order_)).error(), Errc::denied) << "another checkout at the same path";
}

TEST_F(AttemptPlannerTest, a_program_is_started_only_if_this_user_named_it) {
  order_.input.program = "/opt/claude";
  EXPECT_NE(refusal().find("a store does not decide what is started"), std::string::npos) << refusal();
  const auto named = plan({.environment = {}, .program = "/opt/claude"});
  ASSERT_TRUE(named) << named.error().describe();
  EXPECT_EQ(named->invocation.program, "/opt/claude");
}

/// Resolves every name, and reads a key that the settings may name.
AttemptPlanner::Options with_models() {
  return {
      .environment = {}, .program = {}, .blocking_resolve_model = [](const agent::Settings&, const std::string& name) {
        ResolvedModel model;
        model.endpoint.model = name;
        model.endpoint.key = "sk-very-secret";
        model.price.input = 3;
        model.key_variable = "SOME_API_KEY";
        return Result<ResolvedModel>(std::move(model));
      }};
}

TEST_F(AttemptPlannerTest, a_driver_that_calls_models_gets_the_endpoint_the_tools_and_the_form_of_the_answer) {
  folder_.write("repo/stint.toml", "[limits]\ncalls = {capacity = 4, reach = \"process\"}\n");
  write_agent("mailer",
              "driver: llm\nmodel: openai/gpt-5\nlimits: [calls]\noutput: {type: object}\n"
              "tools: [{name: mail, description: d, command: [./mail]}]\n",
              "Mail it.");
  trust();
  order_.agent = "mailer";
  order_.input.args.clear();
  const auto planned = plan(with_models());
  ASSERT_TRUE(planned) << planned.error().describe();
  EXPECT_EQ(planned->endpoint.model, "openai/gpt-5");
  EXPECT_EQ(planned->invocation.price.input, 3);
  ASSERT_EQ(planned->tools.size(), 1U);
  EXPECT_EQ(planned->tools[0].name, "mail");
  EXPECT_NE(planned->output, "");
  ASSERT_EQ(planned->call_limits.size(), 1U);
  EXPECT_EQ(planned->call_limits[0].name, "calls");
  EXPECT_NE(std::ranges::find(planned->secrets, "sk-very-secret"), planned->secrets.end());
  EXPECT_NE(std::ranges::find(planned->environment, "SOME_API_KEY"), planned->environment.end())
      << "tools don't get the key";
  EXPECT_FALSE(plan()) << "this process calls no models";
}

TEST_F(AttemptPlannerTest, an_untrusted_checkout_does_not_decide_where_model_calls_go) {
  write_agent("talker", "driver: llm\nmodel: openai/gpt-5\n", "Say it.");
  order_.agent = "talker";
  order_.input.args.clear();
  EXPECT_TRUE(plan(with_models()));
  folder_.write("repo/stint.toml", "[models.\"openai/gpt-5\"]\nendpoint = \"https://example.com\"\n");
  const auto refused = plan(with_models());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::denied);
  EXPECT_TRUE(refused.error().describe().contains("https://example.com")) << refused.error().describe();
  order_.agent = "review";  // with another driver, and this one chosen for the run
  order_.input.driver = "llm";
  order_.input.args["pr"] = {"1"};
  EXPECT_FALSE(plan(with_models()));
  trust();
  EXPECT_TRUE(plan(with_models()));
}

TEST_F(AttemptPlannerTest, a_missing_or_refused_agent_is_not_planned) {
  order_.agent = "missing";
  EXPECT_NE(refusal().find("has no agent 'missing' any more"), std::string::npos) << refusal();
  write_agent("build", "command: [make]\n", "");
  order_.agent = "build";
  EXPECT_NE(refusal(), "") << "a command needs trust";
}

TEST_F(AttemptPlannerTest, the_token_of_a_run_is_in_its_environment_and_masked) {
  AttemptPlanner::Options options;
  options.environment = [](const domain::WorkOrder& order) {
    return std::vector<std::string>{"STINT_URL=http://h", "STINT_TOKEN=of-" + order.run};
  };
  const auto planned = plan(std::move(options));
  ASSERT_TRUE(planned) << planned.error().describe();
  EXPECT_EQ(planned->secrets, std::vector<std::string>{"of-abc"});
  EXPECT_NE(std::ranges::find(planned->environment, "STINT_TOKEN=of-abc"), planned->environment.end());
}

}  // namespace
}  // namespace stint::project
