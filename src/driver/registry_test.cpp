#include "driver/registry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace stint::driver {
namespace {

/// Calls it with the descriptor of each driver that starts a process.
template <class Check>
void for_each_process_driver(const Check& check) {
  for (const DriverEntry& entry : driver_entries()) {
    SCOPED_TRACE(entry.name);
    if (entry.make_dialect != nullptr) check(*domain::find_driver(entry.name));
  }
}

TEST(DriverRegistry, each_driver_is_found_by_its_name) {
  for (const DriverEntry& entry : driver_entries()) {
    EXPECT_EQ(find_entry(entry.name), &entry);
    EXPECT_EQ(make_dialect(entry.name).has_value(), entry.make_dialect != nullptr) << entry.name;
  }
  EXPECT_EQ(find_entry("aider"), nullptr);
}

TEST(DriverRegistry, what_switches_off_the_retries_of_a_cli_is_part_of_its_command_line) {
  for_each_process_driver([](const domain::DriverDescriptor& driver) {
    Invocation invocation;
    invocation.command = {"./program"};
    invocation.driver_args = {"--config=model_provider=own"};
    const Launch launch = (*make_dialect(driver.name))->launch(invocation);
    for (const auto& [name, value] : driver.retry_off_variables) {
      const auto set = std::ranges::find(launch.env, name, [](const auto& each) { return each.first; });
      ASSERT_NE(set, launch.env.end()) << name;
      EXPECT_EQ(set->second, value);
    }
    for (const std::string_view argument : driver.retry_off_arguments) {
      std::string wanted(argument);
      constexpr std::string_view kPlace = "{provider}";
      if (const std::size_t at = wanted.find(kPlace); at != std::string::npos) wanted.replace(at, kPlace.size(), "own");
      EXPECT_NE(std::ranges::find(launch.argv, wanted), launch.argv.end()) << wanted;
    }
  });
}

TEST(DriverRegistry, a_driver_that_resumes_names_the_conversation_on_its_command_line) {
  for_each_process_driver([](const domain::DriverDescriptor& driver) {
    Invocation invocation;
    invocation.command = {"./program"};
    invocation.conversation = "the-conversation";
    const Launch launch = (*make_dialect(driver.name))->launch(invocation);
    const bool named =
        std::ranges::any_of(launch.argv, [](const std::string& word) { return word.contains("the-conversation"); });
    EXPECT_EQ(named, driver.resumes);
  });
}

TEST(DriverRegistry, a_driver_that_grants_tools_keeps_a_list_of_them_and_others_refuse_it) {
  const ToolRules rules{domain::Permissions::edit, std::vector<std::string>{"Read"}, {}};
  for (const domain::DriverDescriptor& driver : domain::kDrivers) {
    const Result<> kept = check_rules(driver, rules);
    EXPECT_EQ(kept.has_value(), driver.grants_tools) << driver.name;
    if (!kept) EXPECT_TRUE(kept.error().what().contains(driver.name)) << kept.error().what();
  }
}

}  // namespace
}  // namespace stint::driver
