#include "agent/agent_file.hpp"
#include "agent/text.hpp"

#include <gtest/gtest.h>

namespace stint::agent {
namespace {

using namespace std::chrono_literals;
using domain::AgentFormat;

AgentFile foreign(std::string_view text, AgentFormat format, const std::string& stem = "reviewer") {
  return parse_agent(text, {stem + ".md", stem, format});
}

std::string problems_of(const AgentFile& file) {
  std::string out;
  for (const Problem& problem : file.problems) out += describe(problem) + "\n";
  return out;
}

TEST(ForeignClaude, the_body_is_the_system_prompt_and_the_task_an_argument) {
  const AgentFile file = foreign(
      "---\nname: code-reviewer\ndescription: Reviews code\ntools: Read, Grep, Bash(git log:*, git diff:*)\n"
      "disallowedTools: [Write]\nmodel: sonnet\nmaxTurns: 12\npermissionMode: plan\ncolor: red\n---\nYou review "
      "{{code}}.\n",
      AgentFormat::claude, "file");
  ASSERT_TRUE(file.agent) << problems_of(file);
  EXPECT_EQ(problems_of(file), "");
  const domain::Agent& agent = *file.agent;
  EXPECT_EQ(agent.name, "code-reviewer");
  EXPECT_EQ(agent.driver, domain::find_driver("claude"));
  EXPECT_EQ(agent.model, "sonnet");
  EXPECT_EQ(agent.tool_names, (std::vector<std::string>{"Read", "Grep", "Bash(git log:*)", "Bash(git diff:*)"}));
  EXPECT_EQ(agent.tool_names_denied, std::vector<std::string>{"Write"});
  EXPECT_EQ(agent.turns_max, 12U);
  EXPECT_EQ(agent.permissions, domain::Permissions::read);
  EXPECT_EQ(agent.system_prompt, "You review {{code}}.");
  ASSERT_EQ(agent.args.size(), 1U);
  EXPECT_EQ(agent.args[0].name, "task");
  EXPECT_TRUE(agent.args[0].required);
  EXPECT_EQ(render(agent, {{"task", {"look"}}}).value().prompt, "look");
}

TEST(ForeignClaude, tools_as_a_list_and_absent_are_told_apart) {
  EXPECT_EQ(foreign("---\ndescription: d\ntools:\n  - Read\n  - Bash(ls:*)\n---\nx", AgentFormat::claude)
                .agent.value()
                .tool_names,
            (std::vector<std::string>{"Read", "Bash(ls:*)"}));
  EXPECT_EQ(foreign("---\ndescription: d\n---\nx", AgentFormat::claude).agent.value().tool_names, std::nullopt);
  EXPECT_EQ(foreign("---\ndescription: d\ntools: []\n---\nx", AgentFormat::claude).agent.value().tool_names,
            std::vector<std::string>());
  EXPECT_EQ(foreign("---\ndescription: d\nmodel: inherit\n---\nx", AgentFormat::claude).agent.value().model, "");
}

TEST(ForeignClaude, a_description_that_is_not_yaml_is_read_as_its_tool_does) {
  const AgentFile file = foreign(
      "---\nname: a\ndescription: Use this when: it's \"late\". Examples:\\n<example>user: hi</example>\ntools: Read, "
      "Grep\n---\nx",
      AgentFormat::claude);
  ASSERT_TRUE(file.agent) << problems_of(file);
  EXPECT_EQ(file.agent->description, "Use this when: it's \"late\". Examples:\\n<example>user: hi</example>");
  ASSERT_EQ(file.problems.size(), 1U);
  EXPECT_EQ(file.problems[0].severity, Severity::warning);
  EXPECT_EQ(file.problems[0].line, 3);
}

TEST(ForeignClaude, keys_of_stint_work_in_every_case) {
  const AgentFile file = foreign("---\ndescription: d\nmaxConcurrency: 2\nidle-timeout: 5m\nbudget: {time: 1h}\n---\nx",
                                 AgentFormat::claude);
  ASSERT_TRUE(file.agent) << problems_of(file);
  EXPECT_EQ(file.agent->max_concurrency, 2U);
  EXPECT_EQ(file.agent->idle_timeout, 5min);
  EXPECT_EQ(file.agent->budget.time, 1h);
  EXPECT_FALSE(foreign("---\ndescription: d\nmaxConcurrency: 0\n---\nx", AgentFormat::claude).agent);
}

TEST(ForeignClaude, misspelt_keys_are_refused_and_unused_ones_warn) {
  EXPECT_EQ(
      problems_of(foreign("---\ndescription: d\ndisalowedTools: Bash\nmcpServers: [x]\n---\nx", AgentFormat::claude)),
      "reviewer.md:3:1: error: disalowedTools: unknown key; did you mean 'disallowed_tools'?\n"
      "reviewer.md:4:1: warning: mcp_servers: is not used by Stint\n");
}

TEST(ForeignClaude, a_display_name_becomes_a_short_one) {
  const AgentFile file = foreign("---\nname: Code Reviewer!\ndescription: d\n---\nx", AgentFormat::claude);
  ASSERT_TRUE(file.agent) << problems_of(file);
  EXPECT_EQ(file.agent->name, "code-reviewer");
  EXPECT_NE(problems_of(file).find("the agent 'Code Reviewer!' has the name 'code-reviewer' in Stint"),
            std::string::npos);
}

TEST(ForeignCoven, is_read_fully) {
  const AgentFile file = foreign(
      "---\ndescription: Does one task\nargs:\n  - name: task\n    description: What\n    required: "
      "true\nmax_concurrency: 1\n"
      "claude_args: [\"--allowedTools\", \"Bash(git add:*)\"]\ntitle: \"main: {{task}}\"\n---\nDo {{task}}.{{#if "
      "extra}} {{extra}}{{/if}}\n",
      AgentFormat::coven, "main");
  ASSERT_TRUE(file.agent) << problems_of(file);
  EXPECT_EQ(file.agent->driver, domain::find_driver("claude"));
  EXPECT_EQ(file.agent->max_concurrency, 1U);
  EXPECT_EQ(file.agent->driver_args, (std::vector<std::string>{"--allowedTools", "Bash(git add:*)"}));
  EXPECT_EQ(file.problems.size(), 2U) << problems_of(file);  // {{extra}}, twice, is replaced with nothing, as in coven
  EXPECT_EQ(render(*file.agent, {{"task", {"it"}}}).value().prompt, "Do it.");
}

TEST(ForeignGemini, turns_and_minutes_are_kept) {
  const AgentFile file = foreign(
      "---\nname: x\ndescription: d\nkind: local\ntools: ['*', mcp_github_*]\nmodel: gemini-2.5-pro\nmax_turns: "
      "30\ntimeout_mins: 10\n"
      "temperature: 0.2\n---\nYou are x.\n",
      AgentFormat::gemini);
  ASSERT_TRUE(file.agent) << problems_of(file);
  EXPECT_EQ(problems_of(file), "");
  EXPECT_EQ(file.agent->driver, domain::find_driver("gemini"));
  EXPECT_EQ(file.agent->model, "gemini-2.5-pro");
  EXPECT_EQ(file.agent->turns_max, 30U);
  EXPECT_EQ(file.agent->budget.time, 10min);
}

TEST(ForeignOpencode, core_fields) {
  const AgentFile file = foreign(
      "---\ndescription: d\nmode: subagent\nmodel: anthropic/x\nsteps: 9\ntools: {write: false, read: true}\n---\nx",
      AgentFormat::opencode);
  ASSERT_TRUE(file.agent) << problems_of(file);
  EXPECT_EQ(file.agent->driver, nullptr);
  EXPECT_EQ(file.agent->model, "");
  EXPECT_NE(problems_of(file).find("'anthropic/x' is a model name of opencode"), std::string::npos);
  EXPECT_EQ(file.agent->turns_max, 9U);
  EXPECT_EQ(file.agent->tool_names, std::nullopt) << "tools that are not named are allowed there";
  EXPECT_EQ(file.agent->tool_names_denied, (std::vector<std::string>{"Edit", "Write", "MultiEdit", "NotebookEdit"}));
}

TEST(ForeignOpencode, denied_permissions_and_those_that_ask_are_denied) {
  const auto read = [](const std::string& permission) {
    return foreign("---\ndescription: d\npermission: " + permission + "\n---\nx", AgentFormat::opencode);
  };
  const AgentFile all = read("deny");
  ASSERT_TRUE(all.agent) << problems_of(all);
  EXPECT_EQ(all.agent->tool_names, std::vector<std::string>());
  const AgentFile some = read("{webfetch: deny, bash: ask}");
  ASSERT_TRUE(some.agent) << problems_of(some);
  EXPECT_EQ(some.agent->tool_names_denied, (std::vector<std::string>{"WebFetch", "Bash"}));
  EXPECT_NE(problems_of(some).find("'bash' is denied: a run can't ask a person"), std::string::npos)
      << problems_of(some);
  const AgentFile rules = read("{bash: {'*': deny, 'git log*': allow, 'git push*': deny}}");
  ASSERT_TRUE(rules.agent) << problems_of(rules);
  const std::vector<std::string>& names = rules.agent->tool_names.value();
  EXPECT_TRUE(contains(names, "Bash(git log*)")) << problems_of(rules);
  EXPECT_FALSE(contains(names, "Bash"));
  EXPECT_TRUE(contains(names, "Read")) << "tools that are not named are allowed";
  EXPECT_EQ(rules.agent->tool_names_denied, std::vector<std::string>{"Bash(git push*)"});
  EXPECT_FALSE(read("{bash: {'rm (x)': deny}}").agent) << "a rule that can't be expressed is an error";
  EXPECT_FALSE(read("{telepathy: deny}").agent);
}

TEST(ForeignTools, foreign_names_are_mapped_and_unknown_ones_warn) {
  const AgentFile copilot =
      foreign("---\ndescription: d\ntools: [execute, search/codebase, github/create_issue, telepathy]\n---\nx",
              AgentFormat::github);
  ASSERT_TRUE(copilot.agent) << problems_of(copilot);
  EXPECT_EQ(copilot.agent->tool_names,
            (std::vector<std::string>{"Bash", "Grep", "Glob", "LS", "mcp__github__create_issue"}));
  EXPECT_NE(problems_of(copilot).find("'telepathy' is not a tool of"), std::string::npos);
  const AgentFile gemini = foreign(
      "---\nname: x\ndescription: d\ntools: [read_file, run_shell_command(git log)]\n---\nx", AgentFormat::gemini);
  ASSERT_TRUE(gemini.agent) << problems_of(gemini);
  EXPECT_EQ(gemini.agent->tool_names, (std::vector<std::string>{"Read", "Bash(git log:*)"}));
  EXPECT_EQ(foreign("---\ndescription: d\ntools: ['*']\n---\nx", AgentFormat::github).agent.value().tool_names,
            std::nullopt);
  EXPECT_EQ(foreign("---\ndescription: d\ntools: []\n---\nx", AgentFormat::github).agent.value().tool_names,
            std::vector<std::string>());
}

TEST(ForeignGithub, core_fields) {
  const AgentFile file =
      foreign("---\nname: Test Writer\ndescription: d\ntools: \"read, edit\"\nmcp-servers: {}\n---\nx",
              AgentFormat::github, "test-writer");
  ASSERT_TRUE(file.agent) << problems_of(file);
  EXPECT_EQ(file.agent->name, "test-writer");
  EXPECT_EQ(file.agent->tool_names, (std::vector<std::string>{"Read", "Edit", "Write", "MultiEdit", "NotebookEdit"}));
}

}  // namespace
}  // namespace stint::agent
