#include "provider/script.hpp"

#include "agent/toml.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

namespace stint::provider {
namespace {

namespace json = boost::json;

std::string_view view(json::string_view text) { return {text.data(), text.size()}; }

json::value to_json(const toml::node& node) {
  if (const auto* table = node.as_table()) {
    json::object out;
    for (const auto& [key, value] : *table) out[std::string(key.str())] = to_json(value);
    return out;
  }
  if (const auto* array = node.as_array()) {
    json::array out;
    for (const toml::node& value : *array) out.push_back(to_json(value));
    return out;
  }
  if (const auto* text = node.as_string()) return json::value(json::string(text->get()));
  if (const auto* number = node.as_integer()) return json::value(number->get());
  if (const auto* number = node.as_floating_point()) return json::value(number->get());
  if (const auto* truth = node.as_boolean()) return json::value(truth->get());
  return nullptr;
}

Result<json::value> parse_any(std::string_view text) {
  if (text.size() > Script::kBytesMax) {
    return fail(Errc::invalid, fmt::format("the script has {} bytes; at most {}", text.size(), Script::kBytesMax));
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    boost::system::error_code error;
    json::value value = json::parse(json::string_view(text.data(), text.size()), error);
    if (error) return fail(Errc::invalid, fmt::format("the script is invalid JSON: {}", error.message()));
    return value;
  }
  try {
    return to_json(toml::parse(text));
  } catch (const toml::parse_error& error) {
    return fail(Errc::invalid, fmt::format("the script is invalid TOML: line {}: {}", error.source().begin.line,
                                           std::string(error.description())));
  } catch (const agent::TomlAssert&) {
    return fail(Errc::invalid, "the script is invalid TOML");
  }
}

/// A value as it is written in a prompt's line.
std::string text_of(const json::value& value) {
  if (value.is_string()) return std::string(view(value.get_string()));
  return json::serialize(value);
}

Result<> set_tools(Reply& reply, const json::value& value) {
  if (!value.is_array()) return fail(Errc::invalid, "tools: give a list of {name, input}");
  for (const json::value& call : value.get_array()) {
    const json::object* const fields = call.if_object();
    if (fields == nullptr || !fields->contains("name")) return fail(Errc::invalid, "tools: each needs a name");
    STINT_CHECK(set(reply, "tool", text_of(fields->at("name"))));
    if (const json::value* const input = fields->if_contains("input"))
      STINT_CHECK(set(reply, "input", text_of(*input)));
  }
  return {};
}

Result<> set_headers(Reply& reply, const json::value& value) {
  if (!value.is_object()) return fail(Errc::invalid, "headers: give a table of names and values");
  for (const auto& [name, content] : value.get_object()) {
    STINT_CHECK(set(reply, "header", fmt::format("{}:{}", view(name), text_of(content))));
  }
  return {};
}

Result<> set_field(Reply& reply, std::string_view key, const json::value& value) {
  if (key == "tools") return set_tools(reply, value);
  if (key == "headers") return set_headers(reply, value);
  return set(reply, key, text_of(value));
}

Error in_rule(std::string_view where, const Error& error) {
  return {Errc::invalid, fmt::format("{}: {}", where, error.what())};
}

}  // namespace

bool Script::Rule::fits(const Question& question) const {
  if (reply.times != 0 && used >= reply.times) return false;
  if (turn && *turn != question.turn) return false;
  if (!protocol.empty() && protocol != question.protocol) return false;
  if (!model.empty() && question.model.find(model) == std::string_view::npos) return false;
  return match.empty() || question.prompt.find(match) != std::string_view::npos;
}

Result<Script> Script::parse(std::string_view text) {
  STINT_TRY(const json::value value, parse_any(text));
  if (!value.is_object()) return fail(Errc::invalid, "the script must be a table with `default` and `reply`");
  Script script;
  const auto fill = [](Reply& reply, Rule* rule, const json::object& fields, const std::string& where) -> Result<> {
    // `tool` before `input`, whatever the order in the file.
    if (const json::value* const tool = fields.if_contains("tool")) {
      if (auto done = set(reply, "tool", text_of(*tool)); !done) return fail(in_rule(where, done.error()));
    }
    for (const auto& [name, field] : fields) {
      const std::string_view key = view(name);
      if (key == "tool") continue;
      if (rule != nullptr && key == "match") {
        rule->match = text_of(field);
      } else if (rule != nullptr && key == "model") {
        rule->model = text_of(field);
      } else if (rule != nullptr && key == "protocol") {
        rule->protocol = text_of(field);
      } else if (rule != nullptr && key == "turn") {
        if (!field.is_int64() || field.get_int64() < 0) return fail(Errc::invalid, where + ": turn: give 0, 1, 2, …");
        rule->turn = static_cast<std::uint32_t>(field.get_int64());
      } else if (auto done = set_field(reply, key, field); !done) {
        return fail(in_rule(where, done.error()));
      }
    }
    return {};
  };
  for (const auto& [name, part] : value.get_object()) {
    if (view(name) == "default" && part.is_object()) {
      STINT_CHECK(fill(script.fallback_, nullptr, part.get_object(), "default"));
    } else if (view(name) != "reply" || !part.is_array()) {
      return fail(Errc::invalid,
                  fmt::format("{}: unknown key; allowed: the table `default` and the list `reply`", view(name)));
    }
  }
  const json::value* const list = value.get_object().if_contains("reply");
  if (list == nullptr) return script;
  for (const json::value& item : list->get_array()) {
    const std::string where = fmt::format("reply {}", script.rules_.size() + 1);
    if (!item.is_object()) return fail(Errc::invalid, where + ": give a table");
    if (script.rules_.size() >= kRulesMax) return fail(Errc::invalid, fmt::format("at most {} replies", kRulesMax));
    Rule& rule = script.rules_.emplace_back();
    rule.reply = script.fallback_;
    STINT_CHECK(fill(rule.reply, &rule, item.get_object(), where));
  }
  return script;
}

Result<Reply> Script::reply_to(const Question& question) {
  Reply reply = fallback_;
  for (Rule& rule : rules_) {
    if (!rule.fits(question)) continue;
    ++rule.used;
    reply = rule.reply;
    break;
  }
  STINT_CHECK(apply_line(reply, question));
  return reply;
}

Result<> Script::apply_line(Reply& reply, const Question& question) {
  const std::vector<std::string_view> lines = directives(question.prompt);
  if (question.turn >= lines.size()) return {};
  const std::string_view line = lines[question.turn];
  reply.times = 0;
  if (auto done = apply_directive(reply, line); !done) {
    return fail(Errc::invalid, fmt::format("@provider line {}: {}", question.turn + 1, done.error().what()));
  }
  if (reply.times != 0 && !strikes(line, reply.times)) reply.fault = Fault::none;
  return {};
}

bool Script::strikes(std::string_view line, std::uint32_t times) {
  auto counter = counters_.find(line);
  if (counter == counters_.end()) {
    if (counter_order_.size() >= kCountersMax) {
      counters_.erase(counter_order_.front());
      counter_order_.erase(counter_order_.begin());
    }
    counter = counters_.emplace(std::string(line), 0).first;
    counter_order_.emplace_back(line);
  }
  return counter->second++ < times;
}

}  // namespace stint::provider
