#include "driver/tool_rules.hpp"

#include "driver/registry.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace stint::driver {
namespace {

using domain::Permissions;
using Names = std::vector<std::string>;

bool has(const Names& arguments, const std::string& wanted) {
  return std::ranges::find(arguments, wanted) != arguments.end();
}
std::string value(const Names& arguments, const std::string& name) {
  for (const std::string& each : arguments) {
    if (each.starts_with(name + "=")) return each.substr(name.size() + 1);
  }
  return "absent";
}

TEST(ToolRules, read_lists_the_allowed_tools) {
  const Names read = claude_arguments({Permissions::read, {}, {}});
  EXPECT_TRUE(has(read, "--permission-mode=default"));
  const std::string tools = "," + value(read, "--tools") + ",";
  for (const std::string_view kept : {"Read", "Grep", "Bash"})
    EXPECT_TRUE(tools.contains("," + std::string(kept) + ","));
  for (const std::string_view left : {"EnterWorktree", "Task", "Agent", "CronCreate", "Monitor", "Skill", "Write"}) {
    EXPECT_FALSE(tools.contains("," + std::string(left) + ",")) << left;
  }
  EXPECT_EQ(value(claude_arguments({Permissions::edit, {}, {}}), "--tools"), "absent");
  EXPECT_EQ(value(claude_arguments({Permissions::read, Names{"Read", "EnterWorktree"}, {}}), "--tools"), "Read");
}

TEST(ToolRules, a_rule_in_parentheses_excludes_modes_that_allow_more) {
  const ToolRules rules{Permissions::edit, Names{"Read", "Edit", "Bash(git log:*)"}, {}};
  const Names arguments = claude_arguments(rules);
  EXPECT_TRUE(has(arguments, "--permission-mode=default")) << "acceptEdits would run rm";
  EXPECT_EQ(value(arguments, "--tools"), "Read,Edit,Bash");
  EXPECT_EQ(value(arguments, "--allowedTools"), "Bash(git log:*),Edit(./**)");
  EXPECT_TRUE(has(arguments, "--strict-mcp-config")) << "the list names no server";
  EXPECT_FALSE(check_rules(*domain::find_driver("claude"), {Permissions::full, Names{"Bash(git log:*)"}, {}}));
  EXPECT_FALSE(check_rules(*domain::find_driver("claude"), {Permissions::edit, Names{"Task(reviewer)"}, {}}));
  EXPECT_TRUE(check_rules(*domain::find_driver("claude"), {Permissions::full, Names{"Bash", "Bash(git log:*)"}, {}}));
}

TEST(ToolRules, restrictions_that_no_mode_enforces_are_refused) {
  const ToolRules no_edits{Permissions::full, {}, {"Edit", "Write"}};
  EXPECT_EQ(codex_arguments(no_edits), Names{"--sandbox=read-only"});
  EXPECT_EQ(gemini_arguments(no_edits), Names{"--approval-mode=default"});
  const ToolRules no_shell{Permissions::full, {}, {"Bash"}};
  EXPECT_EQ(gemini_arguments(no_shell), Names{"--approval-mode=auto_edit"});
  EXPECT_TRUE(check_rules(*domain::find_driver("gemini"), no_shell));
  EXPECT_FALSE(check_rules(*domain::find_driver("codex"), no_shell)) << "it does everything with commands";
  for (const char* const name : {"codex", "gemini", "command"}) {
    const domain::DriverDescriptor& driver = *domain::find_driver(name);
    EXPECT_FALSE(check_rules(driver, {Permissions::edit, Names{"Read"}, {}}));
    EXPECT_FALSE(check_rules(driver, {Permissions::edit, {}, {"Bash(rm *)"}}));
    EXPECT_TRUE(check_rules(driver, {Permissions::edit, {}, {}}));
  }
}

}  // namespace
}  // namespace stint::driver
