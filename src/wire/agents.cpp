#include "wire/agents.hpp"

#include "agent/arguments.hpp"
#include "wire/agent_values.hpp"
#include "wire/json.hpp"

#include <boost/json.hpp>

#include <chrono>

namespace stint::wire {
namespace {

namespace json = boost::json;

json::string text(std::string_view value) { return json::string(valid_utf8(value)); }

json::array texts(std::span<const std::string> values) {
  json::array out;
  for (const std::string& value : values) out.push_back(text(value));
  return out;
}

json::value maybe_ms(const std::optional<Duration>& duration) {
  if (!duration) return nullptr;
  return std::int64_t{std::chrono::duration_cast<std::chrono::milliseconds>(*duration).count()};
}

template <class Number>
json::value or_null(const std::optional<Number>& number) {
  if (!number) return nullptr;
  return static_cast<std::int64_t>(*number);
}

template <class Enum>
json::value word(const std::optional<Enum>& value) {
  if (!value) return nullptr;
  return json::value(json::string(to_string(*value)));
}

json::array arguments_value(const domain::Agent& agent) {
  json::array out;
  for (const domain::ArgumentSpec& spec : agent.args) {
    json::object object{
        {"name", text(spec.name)}, {"description", text(spec.description)}, {"required", spec.required}};
    if (spec.fallback) object["default"] = text(*spec.fallback);
    out.push_back(std::move(object));
  }
  return out;
}

json::array tools_value(const domain::Agent& agent) {
  json::array out;
  for (const domain::Tool& tool : agent.tools) {
    out.push_back({{"name", text(tool.name)},
                   {"description", text(tool.description)},
                   {"class", to_string(tool.tool_class)},
                   {"command", texts(tool.command)},
                   {"timeout_ms", maybe_ms(tool.timeout)}});
  }
  return out;
}

}  // namespace

json::array problems_value(std::span<const agent::Problem> problems) {
  json::array out;
  for (const agent::Problem& problem : problems) {
    json::object object{{"severity", to_string(problem.severity)}, {"file", text(problem.file)}};
    if (problem.line > 0) object["line"] = problem.line;
    if (problem.column > 0) object["column"] = problem.column;
    if (!problem.field.empty()) object["field"] = text(problem.field);
    object["message"] = text(problem.message);
    if (!problem.suggestion.empty()) object["suggestion"] = text(problem.suggestion);
    out.push_back(std::move(object));
  }
  return out;
}

json::object agent_value(const domain::Agent& agent) {
  json::array limits;
  for (const domain::LimitRequest& request : agent.limits) {
    limits.push_back({{"name", text(request.name)}, {"weight", request.weight}});
  }
  json::array command;
  for (const domain::TemplateText& element : agent.command) command.push_back(text(element.text));
  return {{"name", text(agent.name)},
          {"description", text(agent.description)},
          {"file", text(agent.file)},
          {"format", to_string(agent.format)},
          {"usage", text(agent::usage(agent))},
          {"args", arguments_value(agent)},
          {"max_concurrency", or_null(agent.max_concurrency)},
          {"limits", std::move(limits)},
          {"driver", agent.driver != nullptr ? json::value(agent.driver->name) : json::value(nullptr)},
          {"model", text(agent.model)},
          {"driver_args", texts(agent.driver_args)},
          {"permissions", word(agent.permissions)},
          {"command", std::move(command)},
          {"tools", tools_value(agent)},
          {"tool_names", agent.tool_names ? json::value(texts(*agent.tool_names)) : json::value(nullptr)},
          {"tool_names_denied", texts(agent.tool_names_denied)},
          {"turns_max", or_null(agent.turns_max)},
          {"budget",
           {{"time_ms", maybe_ms(agent.budget.time)},
            {"attempts", or_null(agent.budget.attempts)},
            {"tokens", or_null(agent.budget.tokens)},
            {"cost_micros", or_null(agent.budget.cost_micros)}}},
          {"retry", {{"base_ms", maybe_ms(agent.retry.base)}, {"cap_ms", maybe_ms(agent.retry.cap)}}},
          {"idle_timeout_ms", maybe_ms(agent.idle_timeout)},
          {"memory_bytes_max", or_null(agent.memory_bytes_max)},
          {"home", word(agent.home)},
          {"on_crash", word(agent.on_crash)},
          {"next", texts(agent.next)},
          {"priority", agent.priority},
          {"title", text(agent.title.text)}};
}

std::string agents_to_json(std::span<const domain::Agent> agents, std::span<const agent::Problem> problems) {
  json::array list;
  for (const domain::Agent& agent : agents) list.push_back(agent_value(agent));
  return json::serialize(json::object{{"agents", std::move(list)}, {"problems", problems_value(problems)}});
}

std::string settings_to_json(std::span<const agent::Setting> settings, std::span<const agent::Problem> problems) {
  json::array list;
  for (const agent::Setting& setting : settings) {
    json::object origin{{"kind", to_string(setting.origin.kind)}};
    if (!setting.origin.where.empty()) origin["where"] = text(setting.origin.where);
    if (setting.origin.line > 0) origin["line"] = setting.origin.line;
    const json::value value =
        setting.list.empty() ? json::value(text(setting.shown())) : json::value(texts(setting.list));
    list.push_back({{"key", text(setting.key())}, {"value", value}, {"origin", std::move(origin)}});
  }
  return json::serialize(json::object{{"settings", std::move(list)}, {"problems", problems_value(problems)}});
}

std::string to_json(const TrustAnswer& answer) {
  json::array things;
  for (const agent::TrustedThing& thing : answer.things) {
    things.push_back({{"what", text(thing.what)}, {"where", text(thing.where)}});
  }
  return json::serialize(json::object{{"project", text(answer.project.root.string())},
                                      {"trusted_as", text(answer.project.identity().string())},
                                      {"trusted", answer.trusted},
                                      {"needs_trust", std::move(things)}});
}

std::string trust_to_json(std::span<const agent::TrustRecord> records) {
  json::array list;
  for (const agent::TrustRecord& record : records) {
    list.push_back({{"trusted_as", text(record.identity.string())}, {"holds", record.holds}});
  }
  return json::serialize(json::object{{"trusted", std::move(list)}});
}

std::string init_to_json(std::span<const InitFile> files, bool dry_run) {
  json::array list;
  for (const InitFile& file : files) {
    list.push_back({{"path", text(file.path)}, {"action", text(file.action)}, {"purpose", text(file.purpose)}});
  }
  return json::serialize(json::object{{"dry_run", dry_run}, {"files", std::move(list)}});
}

}  // namespace stint::wire
