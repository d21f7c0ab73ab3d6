#include "project/attempt_planner.hpp"

#include "agent/test_folder.hpp"
#include "agent/trust.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace stint::project {
namespace {

using Changes = std::vector<std::string>;

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
  AttemptPlanner planner([&] { return snapshot; }, {});
  for (const domain::DriverDescriptor& driver : domain::kDrivers) {
    domain::WorkOrder order;
    order.agent = fmt::format("by-{}", driver.name);
    order.slot = 3;
    const auto spec = planner.plan(order);
    ASSERT_TRUE(spec) << spec.error().describe();
    EXPECT_EQ(spec->driver, driver.name);
    const std::string& last = spec->environment.back();
    EXPECT_TRUE(last.starts_with(std::string(driver.home_variable) + "=/")) << last;
    EXPECT_TRUE(last.ends_with(order.agent + "/3")) << last;
  }
}

}  // namespace
}  // namespace stint::project
