#include "agent/agent_file.hpp"

#include "agent/frontmatter.hpp"
#include "agent/text.hpp"
#include "agent/yaml.hpp"

#include <gtest/gtest.h>

#include <tuple>

namespace stint::agent {
namespace {

using namespace std::chrono_literals;
using domain::AgentFormat;

AgentFile parsed(std::string_view text, AgentFormat format = AgentFormat::stint, const std::string& stem = "review") {
  return parse_agent(text, {stem + ".md", stem, format});
}

/// A file with a description, one more line (the third) and a prompt.
AgentFile with(std::string_view line) {
  return parsed("---\ndescription: Reviews\n" + std::string(line) + "\n---\nDo it.\n");
}

std::string said(const AgentFile& file) {
  std::string out;
  for (const Problem& problem : file.problems) out += describe(problem) + "\n";
  return out;
}

std::string said_about(std::string_view line) { return said(with(line)); }

/// The whole format, as the documentation shows it.
constexpr std::string_view kWhole = R"(---
description: Reviews one pull request
args:
  - {name: pr, description: Number of the pull request, required: true}
  - {name: focus, description: What to look at first, default: tests}
max_concurrency: 2
limits: [model:opus, {name: gpu, weight: 2}]
driver: claude
model: opus
driver_args: ["--allowedTools", "Read,Grep"]
permissions: edit
budget: {time: 20m, attempts: 3, tokens: 400k, cost: 2.50}
retry: {base: 500ms, cap: 8s}
idle_timeout: 15m
on_crash: resume
next: [dispatch, land]
priority: 5
title: "review {{pr}}"
---

Review pull request {{pr}}. {{#if focus}}Look first at {{focus}}.{{/if}}
)";

TEST(AgentFile, reads_every_field) {
  const AgentFile file = parsed(kWhole);
  ASSERT_TRUE(file.agent) << said(file);
  EXPECT_EQ(said(file), "");
  const domain::Agent& agent = *file.agent;
  EXPECT_EQ(agent.name, "review");
  EXPECT_EQ(agent.description, "Reviews one pull request");
  ASSERT_EQ(agent.args.size(), 2U);
  EXPECT_EQ(agent.args[0], (domain::ArgumentSpec{"pr", "Number of the pull request", true, std::nullopt}));
  EXPECT_EQ(agent.args[1].fallback, "tests");
  EXPECT_EQ(agent.max_concurrency, 2U);
  ASSERT_EQ(agent.limits.size(), 2U);
  EXPECT_EQ(agent.limits[0].name, "model:opus");
  EXPECT_EQ(agent.limits[1], (domain::LimitRequest{"gpu", 2, 7}));
  EXPECT_EQ(agent.driver, domain::find_driver("claude"));
  EXPECT_EQ(agent.model, "opus");
  EXPECT_EQ(agent.driver_args, (std::vector<std::string>{"--allowedTools", "Read,Grep"}));
  EXPECT_EQ(agent.permissions, domain::Permissions::edit);
  EXPECT_EQ(agent.budget.time, 20min);
  EXPECT_EQ(agent.budget.attempts, 3);
  EXPECT_EQ(agent.budget.tokens, 400'000);
  EXPECT_EQ(agent.budget.cost_micros, 2'500'000);
  EXPECT_EQ(agent.retry.base, 500ms);
  EXPECT_EQ(agent.retry.cap, 8s);
  EXPECT_EQ(agent.idle_timeout, 15min);
  EXPECT_EQ(agent.on_crash, domain::OnCrash::resume);
  EXPECT_EQ(agent.next, (std::vector<std::string>{"dispatch", "land"}));
  EXPECT_EQ(agent.priority, 5);
  EXPECT_EQ(agent.prompt.line, 21);
}

TEST(AgentFile, max_concurrency_2_parses) { EXPECT_EQ(with("max_concurrency: 2").agent.value().max_concurrency, 2U); }

TEST(AgentFile, max_concurrency_absent_is_unlimited) {
  EXPECT_EQ(with("priority: 1").agent.value().max_concurrency, std::nullopt);
}

TEST(AgentFile, an_invalid_max_concurrency_is_an_error_with_the_line) {
  for (const char* const bad : {"0", "-1", "two", "1099511627776", "1.5", "true", "~", "[2]", "{a: 2}", "\"2\"", "1e3",
                                "0x10", "99999999999999999999999", "10001", "2 # x\n  3"}) {
    const AgentFile file = with("max_concurrency: " + std::string(bad));
    EXPECT_FALSE(file.agent) << bad;
    ASSERT_FALSE(file.problems.empty()) << bad;
    EXPECT_EQ(file.problems[0].line, std::string_view(bad).contains('\n') ? 4 : 3) << bad << " " << said(file);
  }
  EXPECT_EQ(said_about("max_concurrency: 0"),
            "review.md:3:18: error: max_concurrency: must be at least 1, found 0; leave it out for no limit\n");
  EXPECT_EQ(said_about("max_concurrency: 1099511627776"),
            "review.md:3:18: error: max_concurrency: must be at most 10000, found 1099511627776; leave it out for no "
            "limit\n");
  EXPECT_EQ(
      said_about("max_concurrency: two"),
      "review.md:3:18: error: max_concurrency: expected a whole number, found 'two'; leave it out for no limit\n");
  EXPECT_EQ(said_about("max_concurrency: [2]"),
            "review.md:3:18: error: max_concurrency: expected a whole number, found a list\n");
}

TEST(AgentFile, a_misspelt_key_is_refused_with_a_suggestion) {
  const AgentFile file = with("max_concurency: 2");
  EXPECT_FALSE(file.agent);
  EXPECT_EQ(said(file), "review.md:3:1: error: max_concurency: unknown key; did you mean 'max_concurrency'?\n");
  EXPECT_EQ(said_about("maxConcurrency: 2"),
            "review.md:3:1: error: maxConcurrency: unknown key; did you mean 'max_concurrency'?\n");
  EXPECT_EQ(said_about("frobnicate: 2"), "review.md:3:1: warning: frobnicate: unknown key, ignored\n");
  EXPECT_EQ(said_about("budget: {tiem: 2m}"),
            "review.md:3:10: error: budget.tiem: unknown key; did you mean 'time'?\n");
}

TEST(AgentFile, a_repeated_key_is_an_error) {
  EXPECT_EQ(said_about("priority: 1\npriority: 2"),
            "review.md:4:1: error: priority: appears twice; first in line 3; remove one\n");
  EXPECT_FALSE(with("budget: {time: 1m, time: 2m}").agent);
}

TEST(AgentFile, wrong_types_name_what_was_expected_and_found) {
  const auto holds = [](std::string_view line, std::string_view message) {
    const std::string all = said_about(line);
    EXPECT_NE(all.find(message), std::string::npos) << line << "\n" << all;
    EXPECT_NE(all.find(std::string_view(line).contains('\n') ? "review.md:4:" : "review.md:3:"), std::string::npos)
        << all;
    EXPECT_FALSE(with(line).agent) << line;
  };
  holds("model: [a]", "model: expected text, found a list");
  holds("args: pr", "args: expected a list, found 'pr'; write [pr]");
  holds("args: [{name: pr, required: yes}]", "args[0].required: expected true or false, found 'yes'");
  holds("args: [{name: 1x}]", "'1x' cannot be an argument's name");
  holds("args: [a, a]", "args[1]: there are two arguments 'a'");
  holds("args: [{name: a, required: true, default: x}]", "a required argument can't have a default");
  holds("args: [this]", "'this' cannot be an argument's name");
  holds("driver: cluade", "expected claude, codex, gemini, command or llm, found 'cluade'; did you mean 'claude'?");
  holds("permissions: write", "expected read, edit or full, found 'write'");
  holds("on_crash: retry", "expected resume, rerun or doubt");
  holds("budget: 20m", "budget: expected a mapping such as {name: value}, found '20m'");
  holds("budget: {time: 20}", "budget.time: expected a duration such as");
  holds("budget: {time: 0s}", "budget.time: must be more than 0");
  holds("budget: {tokens: -1}", "budget.tokens: expected a whole number such as");
  holds("budget: {cost: much}", "budget.cost: expected a cost such as 2.50, found 'much'");
  holds("retry: {base: 8s, cap: 1s}", "retry.cap: is less than retry.base");
  holds("idle_timeout: [1m]", "idle_timeout: expected a duration such as 20m, found a list");
  holds("limits: [gpu, gpu]", "limits[1]: 'gpu' appears twice");
  holds("limits: [../gpu]", "limits[0]: '../gpu' cannot be a limit's name");
  holds("limits: [{weight: 2}]", "limits[0]: has no name");
  holds("limits: [{name: gpu, weight: 0}]", "limits[0].weight: must be at least 1, found 0");
  holds("limits: [agent:review]", "agent:review is implied");
  holds("next: [Dispatch]", "next: 'Dispatch' cannot be an agent's name");
  holds("priority: 10000", "priority: must be at most 1000");
  holds("command: ./run.sh", "expected a list of program and arguments, not a shell command line, found './run.sh'");
  holds("driver: command", "the driver 'command' needs a command");
  holds("driver: claude\ncommand: [a]", "the driver 'claude' takes no command; use driver: command");
  holds("command: [a]\non_crash: resume", "the driver 'command' has no conversation to resume");
  holds("title: \"{{x\"", "title: '{{' is not closed");
}

TEST(AgentFile, a_command_is_rendered_element_by_element) {
  const AgentFile file = parsed(
      "---\ndescription: d\nargs: [pr]\ncommand: [\"./review.sh\", \"{{pr}}\", \"--n={{pr}}\"]\ntitle: t "
      "{{pr}}\n---\n");
  ASSERT_TRUE(file.agent) << said(file);
  EXPECT_EQ(file.agent->driver, domain::find_driver("command"));
  const auto rendered = render(*file.agent, {{"pr", {"4 2; rm -rf '$HOME'"}}});
  ASSERT_TRUE(rendered);
  EXPECT_EQ(rendered->command,
            (std::vector<std::string>{"./review.sh", "4 2; rm -rf '$HOME'", "--n=4 2; rm -rf '$HOME'"}));
  EXPECT_EQ(rendered->title, "t 4 2; rm -rf '$HOME'");
  EXPECT_FALSE(render(*file.agent, {{"pr", {std::string("a\0b", 3)}}}));
}

TEST(AgentFile, an_unknown_argument_in_a_template_is_found_when_the_file_is_loaded) {
  const AgentFile file = parsed("---\ndescription: d\nargs: [focus]\n---\n\nOne\nLook at {{focsu}}.\n");
  EXPECT_FALSE(file.agent);
  EXPECT_EQ(said(file), "review.md:7:9: error: {{focsu}} names no argument of this agent; did you mean 'focus'?\n");
  EXPECT_EQ(said_about("title: \"{{x}}\""),
            "review.md:3: error: title: {{x}} names no argument of this agent; add it to args: [{name: x}]\n");
}

TEST(AgentFile, tools_and_an_output_need_a_driver_that_calls_models_itself) {
  EXPECT_NE(said_about("tools: [{name: a, command: [a]}]").find("error: tools: only the driver 'llm' supports it"),
            std::string::npos);
  EXPECT_NE(said_about("driver: claude\noutput: {type: object}").find("output: only the driver 'llm' supports it"),
            std::string::npos);
  EXPECT_EQ(said_about("driver: llm\nmodel: openai/gpt-5\ntools: [{name: a, description: d, command: [a]}]"), "");
}

TEST(AgentFile, a_driver_that_calls_models_needs_one_and_takes_nothing_that_is_for_programs) {
  EXPECT_NE(said_about("driver: llm").find("the driver 'llm' needs a model; add model: PROVIDER/MODEL"),
            std::string::npos);
  for (const std::string_view line : {"driver_args: [a]", "memory: 1G", "idle_timeout: 5m"}) {
    EXPECT_NE(said_about("driver: llm\nmodel: openai/gpt-5\n" + std::string(line)).find("is for programs"),
              std::string::npos)
        << line;
  }
}

TEST(AgentFile, the_name_is_the_files_stem) {
  EXPECT_FALSE(parsed(kWhole, AgentFormat::stint, "Review PR").agent);
  EXPECT_EQ(said(parsed(kWhole, AgentFormat::stint, "ReviewPr")),
            "ReviewPr.md: error: name: the file name is the agent's name, and 'ReviewPr' is not a valid one: a-z, 0-9, "
            "'_' and "
            "'-', at most 64; call it review_pr.md\n");
  EXPECT_EQ(said_about("name: other"),
            "review.md:3:7: warning: name: ignored: the file name decides, 'review'; rename the file\n");
  EXPECT_EQ(said_about("name: review"), "");
}

TEST(AgentFile, all_problems_of_a_file_are_reported_in_order_of_lines) {
  const AgentFile file = parsed("---\npriority: x\nmax_concurrency: 0\n---\n{{y}}\n");
  ASSERT_EQ(file.problems.size(), 4U) << said(file);
  EXPECT_EQ(file.problems[0].field, "description");
  EXPECT_EQ(file.problems[1].line, 2);
  EXPECT_EQ(file.problems[2].line, 3);
  EXPECT_EQ(file.problems[3].line, 5);
}

TEST(Frontmatter, windows_line_ends_and_byte_order_mark_are_taken_off) {
  const AgentFile file = parsed("\xEF\xBB\xBF---\r\ndescription: d\r\npriority: x\r\n---\r\n\r\nOne\r\ntwo\r\n");
  ASSERT_EQ(file.problems.size(), 1U) << said(file);
  EXPECT_EQ(file.problems[0].line, 3);
  EXPECT_EQ(parsed("\xEF\xBB\xBF---\r\ndescription: d\r\n---\r\nOne\r\ntwo\r\n").agent.value().prompt.text, "One\ntwo");
}

TEST(Frontmatter, missing_or_unclosed_frontmatter_is_reported) {
  EXPECT_EQ(said(parsed("Just a prompt")).find("review.md:1:1: error: an agent file must begin with a line '---'"), 0U);
  EXPECT_EQ(said(parsed("")).find("review.md:1:1: error: an agent file must begin"), 0U);
  EXPECT_EQ(said(parsed("---\ndescription: d\n"))
                .find("review.md:1:1: error: the frontmatter that begins here is not closed"),
            0U);
  EXPECT_EQ(said(parsed("---")).find("review.md:1:1: error: the frontmatter that begins here is not closed"), 0U);
  EXPECT_NE(said(parsed("---\n---\nx")).find("description: is missing"), std::string::npos);
  EXPECT_NE(said(parsed("---\n- a\n---\nx")).find("must be 'key: value' lines, found a list"), std::string::npos);
  EXPECT_NE(said(parsed("---\ndescription: d\n---\n \n\n")).find("the prompt is empty"), std::string::npos);
}

TEST(Frontmatter, files_that_are_not_text_are_refused_with_the_line) {
  EXPECT_EQ(said(parsed(std::string_view("---\ndescription: a\0b\n---\nx", 26))),
            "review.md:2: error: contains a NUL byte: this is not a text file; save it as UTF-8\n");
  EXPECT_EQ(said(parsed("---\ndescription: d\n---\n\nab\xff\n")),
            "review.md:5: error: not valid UTF-8; save it as UTF-8\n");
  EXPECT_NE(said(parsed(std::string(kAgentFileMax + 1, 'x'))).find("bytes; at most"), std::string::npos);
  EXPECT_NE(said(parsed("---\na: " + std::string(kFrontmatterMax, 'x') + "\n---\nx")).find("the frontmatter has"),
            std::string::npos);
}

TEST(Yaml, alias_bombs_depth_and_size_are_refused) {
  std::string bomb = "---\na: &a [x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'z'; ++c) {
    bomb += std::string(1, c) + ": &" + c;
    bomb += " [";
    for (int i = 0; i < 9; ++i) bomb += std::string("*") + static_cast<char>(c - 1) + ",";
    bomb += "]\n";
  }
  EXPECT_NE(said(parsed(bomb + "---\nx")).find("review.md:3:8: error: aliases (*name) are not allowed here"),
            std::string::npos)
      << said(parsed(bomb + "---\nx"));
  for (const std::string& deep :
       {"a: " + std::string(20'000, '['), "a: " + std::string(20'000, '{'), std::string(20'000, '['), [] {
          std::string out = "a:";
          for (int i = 0; i < 10'000; ++i) out += " - -";
          return out;
        }()}) {
    EXPECT_FALSE(parsed("---\n" + deep + "\n---\nx").agent);
  }
  EXPECT_NE(said_about("next: [[[[[[[[[[[[[[[[[x]]]]]]]]]]]]]]]]]").find("more than 16 levels"), std::string::npos);
  std::string wide = "next: [";
  for (std::size_t i = 0; i <= kYamlNodesMax; ++i) wide += "a,";
  EXPECT_NE(said_about(wide + "]").find("more than 10000 values"), std::string::npos);
}

TEST(Yaml, tags_and_complex_keys_are_refused) {
  EXPECT_NE(said_about("model: !!binary aGk=").find("review.md:3:8: error: tags"), std::string::npos)
      << said_about("model: !!binary aGk=");
  EXPECT_NE(said_about("[a, b]: c").find("a key must be a word"), std::string::npos) << said_about("[a, b]: c");
  EXPECT_NE(said_about("...\nb: c").find("second YAML document"), std::string::npos) << said_about("...\nb: c");
  EXPECT_NE(said_about("a: b: c").find("review.md:3:5: error: not valid YAML"), std::string::npos)
      << said_about("a: b: c");
  EXPECT_NE(said_about("a: \"x").find("not valid YAML"), std::string::npos);
  EXPECT_NE(said_about("a: \"x\nb: c").find("not valid YAML"), std::string::npos);
  EXPECT_NE(said_about("\tmodel: x").find("not valid YAML"), std::string::npos);
}

TEST(Problems, of_one_file_are_bounded) {
  std::string many = "---\ndescription: d\n";
  for (int i = 0; i < 200; ++i) many += "key" + std::to_string(i) + "x: 1\n";
  const AgentFile file = parsed(many + "---\nx");
  EXPECT_EQ(file.problems.size(), ProblemList::kProblemsMax + 1);
  EXPECT_EQ(file.problems.back().message, "and 150 more problems");
  EXPECT_TRUE(file.agent);
}

TEST(AgentFile, the_name_of_runs_without_a_file_is_reserved) {
  for (const auto& [stem, format, text] :
       {std::tuple{"prompt", domain::AgentFormat::stint, "---\ndescription: d\n---\nx"},
        std::tuple{"prompt", domain::AgentFormat::coven, "---\ndescription: d\n---\nx"},
        std::tuple{"other", domain::AgentFormat::claude, "---\nname: prompt\ndescription: d\n---\nx"},
        std::tuple{"other", domain::AgentFormat::claude, "---\nname: Prompt\ndescription: d\n---\nx"},
        std::tuple{"prompt", domain::AgentFormat::github, "---\ndescription: d\n---\nx"}}) {
    const AgentFile file = parse_agent(text, {"x.md", stem, format});
    EXPECT_FALSE(file.agent) << text;
    std::string said;
    for (const Problem& problem : file.problems) said += describe(problem);
    EXPECT_NE(said.find("reserved"), std::string::npos) << said;
    EXPECT_NE(said.find("ask.md"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace stint::agent
