#include "agent/agent_file.hpp"

#include "agent/frontmatter.hpp"
#include "agent/schema.hpp"
#include "agent/template.hpp"
#include "agent/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stint::agent {
namespace {

using domain::Agent;
using domain::AgentFormat;

std::optional<YamlNode> parse_settings(const Frontmatter& parts, AgentFormat format, ProblemList& problems) {
  const bool lenient = format != AgentFormat::stint && format != AgentFormat::coven;
  ProblemList strict(problems.file());
  std::optional<YamlNode> root = parse_yaml(parts.yaml, parts.yaml_line, lenient ? strict : problems);
  if (!lenient) return root;
  if (!root) {
    ProblemList second(problems.file());
    root = parse_yaml(quote_plain_values(parts.yaml), parts.yaml_line, second);
    if (root && !second.has_errors()) {
      const std::vector<Problem> why = strict.take();
      problems.warning({why[0].line, why[0].column}, "", "not valid YAML, read line by line",
                       "put the value in quotes");
      return root;
    }
  }
  for (Problem& problem : strict.take())
    problems.error({problem.line, problem.column}, problem.field, problem.message, problem.suggestion);
  return root;
}

void check_name(const Agent& agent, ProblemList& problems) {
  if (agent.name == domain::kPromptAgent) {
    problems.error({}, "name", fmt::format("'{}' is reserved for runs without a file (`stint run -p`)", agent.name),
                   "give the file another name, such as ask.md");
    return;
  }
  if (domain::is_agent_name(agent.name)) return;
  std::string better;
  for (const char c : snake_case(agent.name)) {
    better += domain::is_agent_name(std::string("a") + c) ? c : '-';
  }
  problems.error(
      {}, "name",
      fmt::format("the file name is the agent's name, and '{}' is not a valid one: a-z, 0-9, '_' and '-', at most {}",
                  excerpt(agent.name), domain::kAgentNameMax),
      domain::is_agent_name(better) ? fmt::format("call it {}.md", better) : "");
}

}  // namespace

AgentFile parse_agent(std::string_view text, const AgentSource& source) {
  ProblemList problems(source.file);
  Agent agent;
  agent.file = source.file;
  agent.name = source.stem;
  agent.format = source.format;

  if (const std::optional<Frontmatter> parts = split_frontmatter(text, problems)) {
    const std::optional<YamlNode> root = parse_settings(*parts, source.format, problems);
    static const YamlNode kEmpty{YamlNode::Kind::map, {}, false, {}, {}, {}, {}};
    if (root && root->kind != YamlNode::Kind::map && root->kind != YamlNode::Kind::null) {
      problems.error(root->place, "",
                     fmt::format("the frontmatter must be 'key: value' lines, found {}", root->found()));
    } else if (root) {
      const bool own = source.format == AgentFormat::stint;
      Fields fields(root->kind == YamlNode::Kind::map ? *root : kEmpty, "", problems, !own);
      if (own) {
        read_own(fields, *parts, agent);
      } else {
        read_foreign(fields, *parts, agent);
      }
      fields.finish();
      check_templates(agent, problems);
    }
  }
  check_name(agent, problems);
  AgentFile out;
  if (!problems.has_errors()) out.agent = std::move(agent);
  out.problems = problems.take();
  return out;
}

Result<RenderedAgent> render(const Agent& agent, const domain::ArgumentValues& values) {
  const auto fill = [&](const domain::TemplateText& text) -> Result<std::string> {
    if (!text.text.contains("{{")) return text.text;
    const auto parsed = Template::parse(text.text);
    if (!parsed) return fail(Errc::invalid, fmt::format("{}:{}: {}", agent.file, text.line, parsed.error().message));
    return parsed->render(values);
  };
  RenderedAgent out;
  STINT_TRY(out.prompt, fill(agent.prompt));
  STINT_TRY(out.title, fill(agent.title));
  for (const domain::TemplateText& element : agent.command) {
    STINT_TRY(std::string rendered, fill(element));
    if (rendered.contains('\0')) {
      return fail(Errc::invalid, "a value with a NUL byte cannot be an argument of a command");
    }
    out.command.push_back(std::move(rendered));
  }
  return out;
}

}  // namespace stint::agent
