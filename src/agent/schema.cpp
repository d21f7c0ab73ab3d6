#include "agent/schema.hpp"

#include "agent/agent_file.hpp"
#include "agent/template.hpp"
#include "agent/text.hpp"
#include "agent/tool_entries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace stint::agent {
namespace {

using domain::Agent;
using Words = std::span<const std::string_view>;

// In the order of the enumerations.
constexpr std::array<std::string_view, 3> kPermissions{"read", "edit", "full"};
constexpr std::array<std::string_view, 3> kOnCrash{"resume", "rerun", "doubt"};
constexpr std::array<std::string_view, 2> kHomes{"shared", "slot"};

template <class Enum>
std::optional<Enum> choose(Fields& fields, std::string_view key, Words words) {
  const std::optional<std::size_t> index = fields.choice(key, words);
  return index ? std::optional(static_cast<Enum>(*index)) : std::nullopt;
}

/// Null: the file names none, or one that there is not.
const domain::DriverDescriptor* read_driver(Fields& fields) {
  const std::optional<std::size_t> index = fields.choice("driver", domain::kDriverNames);
  return index ? &domain::kDrivers[*index] : nullptr;
}

std::vector<std::string> argument_names(const Agent& agent) {
  std::vector<std::string> names;
  for (const domain::ArgumentSpec& spec : agent.args) names.push_back(spec.name);
  return names;
}

void read_limit(const YamlNode& node, std::string_view path, Fields& fields, Agent& agent) {
  domain::LimitRequest request;
  request.line = node.place.line;
  if (node.kind == YamlNode::Kind::scalar) {
    request.name = node.text;
  } else if (node.kind == YamlNode::Kind::map) {
    Fields inner(node, std::string(path), fields.problems());
    request.name = inner.text("name").value_or("");
    request.weight = static_cast<std::uint32_t>(inner.integer("weight", 1, domain::kPermitsMax).value_or(1));
    if (inner.find("name") == nullptr) fields.problems().error(node.place, std::string(path), "has no name");
    inner.finish();
  } else {
    fields.expected(node, path, "a limit's name or {name: gpu, weight: 2}");
    return;
  }
  const auto refuse = [&](std::string message) {
    fields.problems().error(node.place, std::string(path), std::move(message));
  };
  if (request.name.empty()) return;
  if (!domain::is_limit_name(request.name)) {
    return refuse(fmt::format("'{}' cannot be a limit's name: letters, digits, '_', '-', '.' and ':' only",
                              excerpt(request.name)));
  }
  if (const std::string meant = domain::limit_of_file_name(request.name); !meant.empty()) {
    return refuse(fmt::format("the limit is called '{}'", meant));
  }
  if (request.name == domain::agent_limit(agent.name)) {
    return refuse(fmt::format("{} is implied: set max_concurrency instead", request.name));
  }
  if (contains(agent.limits, request.name, &domain::LimitRequest::name)) {
    return refuse(fmt::format("'{}' appears twice; give it a weight instead", request.name));
  }
  agent.limits.push_back(std::move(request));
}

void read_limits(Fields& fields, Agent& agent) {
  const YamlNode* const list = fields.list("limits");
  if (list == nullptr) return;
  if (list->items.size() > kLimitRequestsMax) {
    fields.problems().error(list->place, "limits",
                            fmt::format("{} limits; at most {}", list->items.size(), kLimitRequestsMax));
    return;
  }
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    read_limit(list->items[i], fmt::format("limits[{}]", i), fields, agent);
  }
}

void read_budget(Fields& fields, Agent& agent) {
  const YamlNode* const map = fields.map("budget");
  if (map == nullptr) return;
  Fields inner(*map, "budget", fields.problems());
  agent.budget.time = inner.duration("time");
  agent.budget.attempts = inner.count("attempts");
  agent.budget.tokens = inner.count("tokens");
  agent.budget.cost_micros = inner.cost("cost");
  inner.finish();
}

void read_retry(Fields& fields, Agent& agent) {
  const YamlNode* const map = fields.map("retry");
  if (map == nullptr) return;
  Fields inner(*map, "retry", fields.problems());
  agent.retry.base = inner.duration("base");
  agent.retry.cap = inner.duration("cap");
  if (agent.retry.base && agent.retry.cap && *agent.retry.cap < *agent.retry.base) {
    fields.problems().error(inner.find("cap")->place, "retry.cap", "is less than retry.base", "exchange the two");
  }
  inner.finish();
}

void read_command(Fields& fields, Agent& agent) {
  const YamlNode* const node = fields.find("command");
  if (node == nullptr) return;
  if (node->kind != YamlNode::Kind::list) {
    fields.expected(*node, "command", "a list of program and arguments, not a shell command line",
                    R"(write ["sh", "-c", "…"] if you want a shell)");
    return;
  }
  for (const YamlNode& item : node->items) {
    if (item.kind != YamlNode::Kind::scalar) return fields.expected(item, "command", "a list of text");
    agent.command.push_back({item.text, item.place.line});
  }
  if (agent.command.empty() || agent.command[0].empty()) {
    fields.problems().error(node->place, "command", "names no program");
  }
}

void read_next(Fields& fields, Agent& agent) {
  agent.next = fields.texts("next").value_or(std::vector<std::string>());
  for (const std::string& name : agent.next) {
    if (domain::is_agent_name(name)) continue;
    fields.problems().error(fields.find("next")->place, "next",
                            fmt::format("'{}' cannot be an agent's name", excerpt(name)));
  }
}

/// Only a driver that makes its calls itself can call tools, and ask for an answer of some form.
void check_calls(Fields& fields, const Agent& agent) {
  if (agent.driver != nullptr && agent.driver->calls_in_process) return;
  for (const std::string_view key : {"tools", "output"}) {
    const YamlNode* const node = fields.find(key);
    if (node == nullptr) continue;
    const std::string_view driver = domain::in_process_driver().name;
    std::string remedy = fmt::format("use driver: {}, or remove it", driver);
    if (key == "tools") remedy += ": agent CLIs bring their own tools";
    fields.problems().error(node->place, std::string(key), fmt::format("only the driver '{}' supports it", driver),
                            std::move(remedy));
  }
}

/// Checks fields that depend on each other.
void check_driver(Fields& fields, const Agent& agent) {
  const auto place = [&](std::string_view key) {
    const YamlNode* const node = fields.find(key);
    return node == nullptr ? Place{1, 0} : node->place;
  };
  const domain::DriverDescriptor& driver = *agent.driver;
  if (driver.runs_command && agent.command.empty() && fields.find("command") == nullptr) {
    fields.problems().error(place("driver"), "driver", fmt::format("the driver '{}' needs a command", driver.name),
                            "add command: [./program]");
  }
  if (!agent.command.empty() && !driver.runs_command) {
    fields.problems().error(place("command"), "command", fmt::format("the driver '{}' takes no command", driver.name),
                            fmt::format("use driver: {}", domain::command_driver().name));
  }
  if (driver.calls_in_process) {
    if (fields.find("model") == nullptr) {
      fields.problems().error(place("driver"), "driver", fmt::format("the driver '{}' needs a model", driver.name),
                              "add model: PROVIDER/MODEL");
    }
    for (const std::string_view key : {"driver_args", "home", "memory", "idle_timeout"}) {
      if (fields.find(key) == nullptr) continue;
      fields.problems().error(place(key), std::string(key),
                              fmt::format("is for programs, and the driver '{}' starts none", driver.name),
                              "remove it");
    }
  }
  if (!driver.resumes && agent.on_crash == domain::OnCrash::resume) {
    fields.problems().error(place("on_crash"), "on_crash",
                            fmt::format("the driver '{}' has no conversation to resume", driver.name),
                            "use rerun if it may run twice, else doubt");
  }
}

}  // namespace

void read_args(Fields& fields, Agent& agent) {
  const YamlNode* const list = fields.list("args");
  if (list == nullptr) return;
  if (list->items.size() > kArgumentSpecsMax) {
    fields.problems().error(list->place, "args",
                            fmt::format("{} arguments; at most {}", list->items.size(), kArgumentSpecsMax));
    return;
  }
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const YamlNode& node = list->items[i];
    const std::string path = fmt::format("args[{}]", i);
    domain::ArgumentSpec spec;
    if (node.kind == YamlNode::Kind::scalar) {
      spec.name = node.text;
    } else if (node.kind == YamlNode::Kind::map) {
      Fields inner(node, path, fields.problems());
      spec.name = inner.text("name").value_or("");
      spec.description = inner.text("description").value_or("");
      spec.required = inner.flag("required").value_or(false);
      spec.fallback = inner.text("default");
      inner.finish();
    } else {
      fields.expected(node, path, "an argument's name or {name: pr, required: true}");
      continue;
    }
    const auto refuse = [&](std::string message) { fields.problems().error(node.place, path, std::move(message)); };
    if (!domain::is_argument_name(spec.name) || spec.name == "this" || spec.name == "else") {
      refuse(fmt::format("'{}' cannot be an argument's name: a letter, then letters, digits, '_' and '-'",
                         excerpt(spec.name)));
    } else if (contains(agent.args, spec.name, &domain::ArgumentSpec::name)) {
      refuse(fmt::format("there are two arguments '{}'", spec.name));
    }
    if (spec.required && spec.fallback) refuse("a required argument can't have a default");
    agent.args.push_back(std::move(spec));
  }
}

void read_shared(Fields& fields, Agent& agent) {
  if (const auto count = fields.integer("max_concurrency", 1, domain::kPermitsMax, "leave it out for no limit")) {
    agent.max_concurrency = static_cast<std::uint32_t>(*count);
  }
  read_limits(fields, agent);
  if (const domain::DriverDescriptor* const driver = read_driver(fields)) agent.driver = driver;
  agent.driver_args = fields.texts("driver_args").value_or(std::vector<std::string>());
  read_budget(fields, agent);
  read_retry(fields, agent);
  agent.idle_timeout = fields.duration("idle_timeout");
  if (const auto memory = fields.bytes("memory")) agent.memory_bytes_max = static_cast<std::uint64_t>(*memory);
  agent.home = choose<domain::AgentHome>(fields, "home", kHomes);
  if (agent.home == domain::AgentHome::slot && !agent.max_concurrency) {
    fields.problems().error(fields.find("home")->place, "home", "'slot' needs max_concurrency: each permit has a home");
  }
  agent.on_crash = choose<domain::OnCrash>(fields, "on_crash", kOnCrash);
  read_next(fields, agent);
  agent.priority = static_cast<int>(fields.integer("priority", -kPriorityMax, kPriorityMax).value_or(0));
  if (const YamlNode* const title = fields.find("title")) {
    if (const auto text = fields.text("title")) agent.title = {*text, title->place.line};
  }
}

void read_own(Fields& fields, const Frontmatter& parts, Agent& agent) {
  agent.prompt = {parts.body, parts.body_line};
  agent.description = fields.text("description").value_or("");
  if (fields.find("description") == nullptr) {
    fields.problems().error({1, 1}, "description", "is missing", "describe in one line what the agent does");
  } else if (trimmed(agent.description).empty()) {
    fields.problems().error(fields.find("description")->place, "description", "is empty");
  }
  if (const auto name = fields.text("name"); name && *name != agent.name) {
    fields.problems().warning(fields.find("name")->place, "name",
                              fmt::format("ignored: the file name decides, '{}'", agent.name), "rename the file");
  }
  read_args(fields, agent);
  read_shared(fields, agent);
  agent.model = fields.text("model").value_or("");
  agent.permissions = choose<domain::Permissions>(fields, "permissions", kPermissions);
  read_command(fields, agent);
  if (!agent.command.empty() && agent.driver == nullptr && fields.find("driver") == nullptr) {
    agent.driver = &domain::command_driver();
  }
  read_tool_entries(fields, agent);
  read_output(fields, agent);
  check_calls(fields, agent);
  if (agent.driver != nullptr) check_driver(fields, agent);
  if (agent.prompt.empty() && (agent.driver == nullptr || !agent.driver->runs_command)) {
    fields.problems().error({parts.body_line, 0}, "", "the prompt is empty", "write it below the second '---'");
  }
}

void check_templates(const Agent& agent, ProblemList& problems) {
  const std::vector<std::string> known = argument_names(agent);
  const auto check = [&](const domain::TemplateText& text, const std::string& field, bool exact) {
    const auto place = [&](int line, int column) {
      return exact ? Place{text.line + line - 1, column} : Place{text.line, 0};
    };
    const auto parsed = Template::parse(text.text);
    if (!parsed) {
      const TemplateError& error = parsed.error();
      return problems.error(place(error.line, error.column), field, error.message, error.suggestion);
    }
    for (const Template::Name& name : parsed->names()) {
      if (contains(known, name.name)) continue;
      std::string message = fmt::format("{{{{{}}}}} names no argument of this agent", name.name);
      std::string suggestion = did_you_mean(name.name, known);
      if (suggestion.empty()) suggestion = fmt::format("add it to args: [{{name: {}}}]", name.name);
      // Coven replaces an unknown name with nothing.
      if (agent.format == domain::AgentFormat::coven) {
        problems.warning(place(name.line, name.column), field, std::move(message), std::move(suggestion));
      } else {
        problems.error(place(name.line, name.column), field, std::move(message), std::move(suggestion));
      }
    }
  };
  check(agent.prompt, "", true);
  check(agent.title, "title", false);
  for (std::size_t i = 0; i < agent.command.size(); ++i) check(agent.command[i], fmt::format("command[{}]", i), false);
}

}  // namespace stint::agent
