#include "agent/tool_entries.hpp"

#include "agent/trust.hpp"
#include "agent/yaml_json.hpp"

#include <gtest/gtest.h>

namespace stint::agent {
namespace {

using namespace std::chrono_literals;

struct Entries {
  domain::Agent agent;
  std::string problems;
};

Entries entries(std::string_view yaml) {
  Entries out;
  ProblemList problems("a.md");
  const auto tree = parse_yaml(yaml, 1, problems);
  EXPECT_TRUE(tree);
  Fields fields(*tree, "", problems);
  read_tool_entries(fields, out.agent);
  read_output(fields, out.agent);
  for (const Problem& problem : problems.take()) out.problems += describe(problem) + "\n";
  return out;
}
domain::Tool one_tool(std::string_view yaml) {
  const Entries found = entries("tools: [" + std::string(yaml) + "]");
  EXPECT_EQ(found.problems, "");
  return found.agent.tools.empty() ? domain::Tool() : found.agent.tools.front();
}
std::string problems_of(std::string_view yaml) { return entries("tools: [" + std::string(yaml) + "]").problems; }

TEST(ToolEntries, a_command_derives_its_input_from_the_names_it_uses) {
  const domain::Tool tool = one_tool(R"({name: send_mail, class: idempotent, description: Sends it, timeout: 20s,
    command: [./mail, "--to={{to}}", "{{body}}", "{{to}}"]})");
  EXPECT_EQ(tool.name, "send_mail");
  EXPECT_EQ(tool.tool_class, domain::ToolClass::idempotent);
  EXPECT_EQ(tool.timeout, 20s);
  EXPECT_EQ(tool.command.size(), 4U);
  EXPECT_EQ(tool.input, R"({"type":"object","properties":{"to":{"type":"string"},"body":{"type":"string"}},)"
                        R"("required":["to","body"],"additionalProperties":false})");
}

TEST(ToolEntries, a_tool_without_a_class_is_never_repeated) {
  EXPECT_EQ(one_tool("{name: a, command: [b]}").tool_class, domain::ToolClass::once);
}

TEST(ToolEntries, an_input_is_json_with_the_types_of_yamls_plain_words) {
  const domain::Tool tool = one_tool(R"({name: a, command: [b, "{{n}}"], input: {type: object, required: [n],
    properties: {n: {type: integer, minimum: -1.5e3, enum: [1, "1", 0x10, true, "true", ~, 'a"\b', 01]}}}})");
  EXPECT_EQ(tool.input, R"({"type":"object","required":["n"],"properties":{"n":{"type":"integer","minimum":-1.5e3,)"
                        R"("enum":[1,"1","0x10",true,"true",null,"a\"\\b","01"]}}})");
}

TEST(ToolEntries, http_and_servers) {
  const domain::Tool http = one_tool(R"({name: a, http: {method: GET, url: "https://example.org/{{id}}",
    headers: {X-A: "v{{id}}", Authorization: {env: TOKEN}}}})");
  ASSERT_TRUE(http.http);
  EXPECT_EQ(http.http->method, "GET");
  ASSERT_EQ(http.http->headers.size(), 2U);
  EXPECT_EQ(http.http->headers[1].variable, "TOKEN");
  EXPECT_NE(http.input.find("\"id\""), std::string::npos);
  const domain::Tool server = one_tool("{name: files, mcp: {command: [npx, server], trusted: true}, timeout: 1m}");
  ASSERT_TRUE(server.mcp);
  EXPECT_TRUE(server.mcp->trusted);
  EXPECT_EQ(server.mcp->command.size(), 2U);
  EXPECT_EQ(server.input, "");
  EXPECT_FALSE(one_tool("{name: far, mcp: {url: \"https://example.org/mcp\"}}").mcp->trusted);
}

TEST(ToolEntries, the_result_may_have_a_schema) {
  EXPECT_EQ(entries("output: {type: object}").agent.output, R"({"type":"object"})");
  EXPECT_NE(entries("output: text").problems, "");
}

TEST(ToolEntries, errors_name_line_field_and_remedy) {
  const std::pair<const char*, const char*> cases[] = {
      {"{command: [b]}", "a.md:1:9: error: tools[0]: has no name\n"},
      {"{name: 'a b', command: [b]}",
       "a.md:1:16: error: tools[0].name: 'a b' cannot be a tool's name: a letter, then letters, digits, '_' and '-'\n"},
      {"{name: a}", "a.md:1:9: error: tools[0]: needs one of command, http and mcp\n"},
      {"{name: a, command: [b], mcp: {command: [c]}}",
       "a.md:1:9: error: tools[0]: needs one of command, http and mcp\n"},
      {"{name: a, command: b c}",
       "a.md:1:28: error: tools[0].command: expected a list of program and arguments, not a shell command line, found "
       "'b c'; write [\"sh\", \"-c\", \"…\"] if you want a shell\n"},
      {"{name: a, command: []}", "a.md:1:28: error: tools[0].command: names no program\n"},
      {"{name: a, command: ['{{x}}']}",
       "a.md:1:28: error: tools[0].command: a model can't choose the program; write the program out\n"},
      {"{name: a, command: [b, '{{x']}", "a.md:1:32: error: tools[0].command[1]: "},
      {"{name: a, class: onc, command: [b]}",
       "a.md:1:26: error: tools[0].class: expected read, idempotent, keyed or once, found 'onc'; did you mean "
       "'once'?\n"},
      {"{name: a, command: [b, '{{too}}'], input: {properties: {to: {}}}}",
       "a.md:1:32: error: tools[0].command[1]: {{too}} names no property of its input; did you mean 'to'?\n"},
      {"{name: a, command: [b], input: {type: array}}",
       "a.md:1:47: error: tools[0].input.type: arguments are always an object; write type: object\n"},
      {"{name: a, command: [b], timeot: 1s}", "tools[0].timeot: unknown key; did you mean 'timeout'?\n"},
      {"{name: a, http: {url: 'ftp://x'}}",
       "a.md:1:31: error: tools[0].http.url: expected http:// or https://, found 'ftp://x'\n"},
      {"{name: a, http: {url: 'https://{{host}}/x'}}",
       "a.md:1:31: error: tools[0].http.url: a model can't choose the host; write the host out\n"},
      {"{name: a, http: {url: 'https://x', headers: {Host: y}}}", "tools[0].http.headers: 'Host' can't be set here\n"},
      {"{name: a, http: {url: 'https://x', headers: {A: {env: STINT_TOKEN}}}}", "not Stint's own\n"},
      {"{name: a, mcp: {}}", "tools[0].mcp: needs either a command or a url\n"},
      {"{name: a, class: read, mcp: {command: [c]}}",
       "a.md:1:26: error: tools[0].class: an MCP server describes its tools itself; set trusted: true if its "
       "annotations are to be believed\n"},
      {"{name: a, command: [b]}, {name: a, command: [c]}", "tools[1]: there are two tools 'a'\n"},
      {"a", "a.md:1:9: error: tools[0]: expected a tool such as"},
  };
  for (const auto& [yaml, expected] : cases) {
    EXPECT_NE(problems_of(yaml).find(expected), std::string::npos) << yaml << "\n" << problems_of(yaml);
  }
}

TEST(ToolEntries, each_way_to_call_needs_trust) {
  domain::Agent agent = entries(R"(tools: [{name: a, command: [./b, c]}, {name: d, http: {url: "https://e/"}},
    {name: f, mcp: {command: [./g]}}, {name: h, mcp: {url: "https://i/"}}])")
                            .agent;
  agent.file = "a.md";
  std::string all;
  for (const TrustedThing& thing : things_that_need_trust(agent, domain::command_driver())) all += thing.what + "\n";
  for (const char* const part : {"./b c", "POST https://e/", "the MCP server ./g", "the MCP server https://i/"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << "\n" << all;
  }
}

}  // namespace
}  // namespace stint::agent
