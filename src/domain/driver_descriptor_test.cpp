#include "domain/driver_descriptor.hpp"

#include "domain/agent.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace stint::domain {
namespace {

TEST(DriverDescriptor, each_driver_is_found_by_its_name_and_has_one_entry) {
  std::set<std::string_view> names;
  for (const DriverDescriptor& driver : kDrivers) {
    EXPECT_TRUE(names.insert(driver.name).second) << driver.name << " has two entries";
    EXPECT_EQ(find_driver(driver.name), &driver);
  }
  EXPECT_TRUE(std::ranges::equal(kDriverNames, kDrivers, {}, {}, &DriverDescriptor::name));
  EXPECT_EQ(find_driver("aider"), nullptr);
  EXPECT_EQ(find_driver(""), nullptr);
}

TEST(DriverDescriptor, an_entry_is_complete) {
  for (const DriverDescriptor& driver : kDrivers) {
    SCOPED_TRACE(driver.name);
    EXPECT_EQ(driver.home_variable.empty(), driver.calls_in_process) << "only a program has a home";
    EXPECT_TRUE(driver.install_hint.empty() || !driver.runs_command) << "a command is the user's own";
    EXPECT_TRUE(driver.account.empty() || (driver.account.starts_with("account:") && is_limit_name(driver.account)));
    EXPECT_EQ(driver.account.empty(), driver.runs_command || driver.calls_in_process)
        << "a driver that calls one provider uses an account there";
    EXPECT_FALSE(driver.runs_command && driver.resumes) << "a command has no conversation";
    EXPECT_TRUE(!driver.always_reads_checkout || !driver.checkout_files.empty());
    EXPECT_TRUE(std::ranges::is_sorted(driver.milestones, std::ranges::greater(), &DriverMilestone::version));
  }
  EXPECT_EQ(std::ranges::count_if(kDrivers, &DriverDescriptor::runs_command), 1);
  EXPECT_TRUE(command_driver().runs_command);
}

TEST(DriverDescriptor, a_driver_that_is_not_there_is_refused_with_those_that_are) {
  EXPECT_EQ(driver_choices(), "claude, codex, gemini, command or llm");
  EXPECT_EQ(why_no_driver("aider"), "there is no driver 'aider'; use claude, codex, gemini, command or llm");
}

}  // namespace
}  // namespace stint::domain
