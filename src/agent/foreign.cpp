// Files of other tools. Their body describes the agent's role, not its task: it becomes the system prompt,
// verbatim, and the task is the argument `task`. Coven's files differ from ours in a few names only.
#include "agent/schema.hpp"
#include "agent/template.hpp"
#include "agent/text.hpp"
#include "agent/tool_table.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <span>

namespace stint::agent {
namespace {

using domain::Agent;
using domain::AgentFormat;

constexpr std::uint32_t kTurnsMax = 100'000;

/// The CLI that a format belongs to; null: none of ours.
const domain::DriverDescriptor* driver_of(AgentFormat format) noexcept {
  switch (format) {
    case AgentFormat::coven:
    case AgentFormat::claude: return domain::find_driver("claude");
    case AgentFormat::gemini: return domain::find_driver("gemini");
    case AgentFormat::stint:
    case AgentFormat::opencode:
    case AgentFormat::github: break;
  }
  return nullptr;
}

/// Turns a display name into an agent name: "Code Reviewer" becomes code-reviewer.
std::string slug(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool kept = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9') || lower == '_';
    if (kept) {
      out += lower;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (out.ends_with('-')) out.pop_back();
  while (out.starts_with('_')) out.erase(0, 1);
  return out.substr(0, domain::kAgentNameMax);
}

void read_name(Fields& fields, Agent& agent) {
  const std::optional<std::string> given = fields.text("name");
  const bool by_key = agent.format == AgentFormat::claude || agent.format == AgentFormat::gemini;
  const std::string shown = by_key && given && !given->empty() ? *given : agent.name;
  const std::string name = slug(shown);
  if (name != shown && !name.empty()) {
    const YamlNode* const node = by_key ? fields.find("name") : nullptr;
    fields.problems().warning(node != nullptr ? node->place : Place{}, "name",
                              fmt::format("the agent '{}' has the name '{}' in Stint", excerpt(shown), name));
  }
  agent.name = name;
}

void read_model(Fields& fields, Agent& agent) {
  const std::optional<std::string> model = fields.text("model");
  if (!model || *model == "inherit") return;
  if (agent.driver != nullptr) {
    agent.model = *model;
    return;
  }
  fields.problems().warning(
      fields.find("model")->place, "model",
      fmt::format("'{}' is a model name of {}, ignored", excerpt(*model), to_string(agent.format)),
      "set driver: and model: in a file in .stint/agents");
}

void read_permission_mode(Fields& fields, Agent& agent) {
  const std::optional<std::string> mode = fields.text("permission_mode");
  if (!mode) return;
  if (*mode == "plan" || *mode == "dontAsk") agent.permissions = domain::Permissions::read;
  if (*mode == "acceptEdits") agent.permissions = domain::Permissions::edit;
  if (*mode == "bypassPermissions") agent.permissions = domain::Permissions::full;
}

void read_turns(Fields& fields, Agent& agent) {
  for (const char* const key : {"max_turns", "steps", "max_steps"}) {
    if (const auto turns = fields.integer(key, 1, kTurnsMax)) agent.turns_max = static_cast<std::uint32_t>(*turns);
  }
  if (agent.format == AgentFormat::gemini && !agent.budget.time) {
    constexpr std::int64_t kMinutesMax = 24 * 60;
    if (const auto minutes = fields.integer("timeout_mins", 1, kMinutesMax))
      agent.budget.time = std::chrono::minutes(*minutes);
  }
}

/// Keys that belong to the other tool. Warns about those that change what an agent may do, ignores the rest.
void pass_over(Fields& fields, AgentFormat format) {
  constexpr std::array<std::string_view, 8> kMatter{"permission", "mcp_servers", "hooks",      "skills",
                                                    "isolation",  "memory",      "background", "initial_prompt"};
  constexpr std::array<std::string_view, 13> kCosmetic{
      "color",          "effort", "kind",     "temperature", "top_p",  "mode", "hidden", "disable_model_invocation",
      "user_invocable", "target", "metadata", "disable",     "license"};
  const std::span matter = std::span(kMatter).subspan(format == AgentFormat::opencode ? 1 : 0);  // there it is read
  for (const std::string_view key : matter) {
    if (const YamlNode* const node = fields.find(key)) {
      fields.problems().warning(node->key_place, std::string(key), "is not used by Stint");
    }
  }
  fields.ignore(matter);
  fields.ignore(kCosmetic);
}

void read_coven(Fields& fields, const Frontmatter& parts, Agent& agent) {
  agent.driver = driver_of(agent.format);
  read_own(fields, parts, agent);
  const auto theirs = fields.texts("claude_args");
  if (theirs && agent.driver_args.empty()) agent.driver_args = *theirs;
}

}  // namespace

void read_foreign(Fields& fields, const Frontmatter& parts, Agent& agent) {
  if (agent.format == AgentFormat::coven) return read_coven(fields, parts, agent);
  agent.driver = driver_of(agent.format);
  read_name(fields, agent);
  agent.description = fields.text("description").value_or("");
  if (agent.description.empty()) {
    fields.problems().error({1, 1}, "description", "is missing", "describe in one line what the agent does");
  }
  read_shared(fields, agent);
  if (agent.driver_args.empty()) {
    if (const auto theirs = fields.texts("claude_args")) agent.driver_args = *theirs;
  }
  read_model(fields, agent);
  ForeignTools tools = read_tools(fields, agent.format);
  agent.tool_names = std::move(tools.allowed);
  agent.tool_names_denied = std::move(tools.denied);
  read_turns(fields, agent);
  read_permission_mode(fields, agent);
  pass_over(fields, agent.format);
  agent.system_prompt = parts.body;
  agent.args = {{"task", "Task for the agent", true, std::nullopt}};
  agent.prompt = {"{{task}}", parts.body_line};
}

std::string quote_plain_values(std::string_view yaml) {
  std::string out;
  while (!yaml.empty()) {
    const std::size_t end = std::min(yaml.find('\n'), yaml.size());
    const std::string_view line = yaml.substr(0, end);
    yaml.remove_prefix(std::min(end + 1, yaml.size()));
    const std::size_t colon = line.find(": ");
    const bool is_key = colon != std::string_view::npos && domain::is_argument_name(line.substr(0, colon));
    const std::string_view value = is_key ? trimmed(line.substr(colon + 2)) : std::string_view();
    if (value.empty() || std::string_view("\"'[{|>").contains(value[0])) {
      out.append(line).append("\n");
      continue;
    }
    out.append(line.substr(0, colon)).append(": '");
    for (const char c : value) out.append(c == '\'' ? 2 : 1, c);
    out.append("'\n");
  }
  return out;
}

}  // namespace stint::agent
