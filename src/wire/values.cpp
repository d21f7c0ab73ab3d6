#include "wire/values.hpp"

#include "agent/text.hpp"
#include "wire/json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace stint::wire {
namespace {

Result<std::string> plain(const std::string& name, const json::value& value) {
  switch (value.kind()) {
    case json::kind::string: return std::string(value.get_string());
    case json::kind::bool_: return std::string(value.get_bool() ? "true" : "false");
    case json::kind::int64:
    case json::kind::uint64:
    case json::kind::double_: return json::serialize(value);
    default: return fail(Errc::invalid, "the argument '" + name + "' must be a string, a number, or a list of them");
  }
}

}  // namespace

json::string text_value(std::string_view text, json::storage_ptr memory) {
  if (!agent::utf8_error(text)) return {text, std::move(memory)};
  return {valid_utf8(text), std::move(memory)};
}
std::int64_t to_ms(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}
std::int64_t to_ms(WallTime time) { return time.time_since_epoch().count(); }
json::value maybe_time(const std::optional<WallTime>& time) {
  return time ? json::value(to_ms(*time)) : json::value(nullptr);
}

json::object usage_value(const Usage& usage) {
  return {{"fresh_in", usage.fresh_in},       {"cache_read", usage.cache_read},
          {"cache_write", usage.cache_write}, {"out", usage.out},
          {"reasoning", usage.reasoning},     {"tokens", usage.tokens()},
          {"cost_micros", usage.cost_micros}, {"estimated", usage.estimated}};
}

Usage read_usage(const json::value& value) {
  Usage usage;
  const json::object* const object = value.if_object();
  if (object == nullptr) return usage;
  usage.fresh_in = number_at(*object, "fresh_in");
  usage.cache_read = number_at(*object, "cache_read");
  usage.cache_write = number_at(*object, "cache_write");
  usage.out = number_at(*object, "out");
  usage.reasoning = number_at(*object, "reasoning");
  usage.cost_micros = number_at(*object, "cost_micros");
  usage.estimated = flag_at(*object, "estimated");
  return usage;
}

json::array denials_value(const std::vector<Denial>& denials) {
  json::array out;
  for (const Denial& denial : denials) {
    out.push_back(json::object{
        {"tool", text_value(denial.tool)}, {"call", text_value(denial.call)}, {"allow", text_value(denial.allow)}});
  }
  return out;
}

std::vector<Denial> read_denials(const json::value& value) {
  std::vector<Denial> denials;
  const json::array* const array = value.if_array();
  if (array == nullptr) return denials;
  for (const json::value& each : *array) {
    const json::object* const object = each.if_object();
    if (object == nullptr) continue;
    denials.push_back({text_at(*object, "tool"), text_at(*object, "call"), text_at(*object, "allow")});
  }
  return denials;
}

json::object args_value(const domain::ArgumentValues& args, json::storage_ptr memory) {
  json::object object(args.size(), memory);
  for (const auto& [name, values] : args) {
    if (values.size() == 1) {
      object.emplace(name, text_value(values.front(), memory));
      continue;
    }
    json::array list(memory);
    for (const std::string& value : values) list.push_back(text_value(value, memory));
    object.emplace(name, std::move(list));
  }
  return object;
}

Result<domain::ArgumentValues> read_args(const json::value& value) {
  domain::ArgumentValues args;
  const json::object* const object = value.if_object();
  if (object == nullptr) return fail(Errc::invalid, "'args' must be an object of names and values");
  for (const auto& member : *object) {
    const std::string name(member.key());
    std::vector<std::string>& values = args[name];
    if (const json::array* const list = member.value().if_array()) {
      for (const json::value& each : *list) {
        STINT_TRY(std::string text, plain(name, each));
        values.push_back(std::move(text));
      }
    } else {
      STINT_TRY(std::string text, plain(name, member.value()));
      values.push_back(std::move(text));
    }
  }
  return args;
}

json::object budget_value(const domain::BudgetSpec& budget) {
  json::object object;
  if (budget.time) object["time_ms"] = to_ms(*budget.time);
  if (budget.attempts) object["attempts"] = *budget.attempts;
  if (budget.tokens) object["tokens"] = *budget.tokens;
  if (budget.cost_micros) object["cost_micros"] = *budget.cost_micros;
  return object;
}

Result<domain::BudgetSpec> read_budget(const json::value& value) {
  domain::BudgetSpec budget;
  const json::object* const object = value.if_object();
  if (object == nullptr) return fail(Errc::invalid, "'budget' must be an object");
  if (object->contains("cost") && object->contains("cost_micros")) {
    return fail(Errc::invalid, "budget.cost and budget.cost_micros are the same value in two units: send one of them");
  }
  for (const auto& member : *object) {
    const std::string_view name = member.key();
    const json::value& given = member.value();
    constexpr std::string_view kNames[] = {"time_ms", "attempts", "tokens", "cost", "cost_micros"};
    if (std::ranges::find(kNames, name) == std::end(kNames)) {
      return fail(Errc::invalid, "budget has no field '" + agent::excerpt(name) +
                                     "'; allowed: time_ms, attempts, tokens, cost and cost_micros");
    }
    const bool cost = name == "cost";  // in units of the currency, as in an agent file
    std::optional<std::int64_t> number;
    if (!cost) number = whole_number(given);
    if (cost && given.is_number()) {
      const double amount = given.to_number<double>() * 1e6;
      if (std::isfinite(amount) && amount < 1e15) number = std::llround(amount);
      if (amount > 0 && number == 0) {
        return fail(Errc::invalid, "budget.cost is less than a millionth, the smallest amount that is counted");
      }
    }
    if (!number || *number < 0 || *number > 1'000'000'000'000'000) {
      return fail(Errc::invalid, "budget." + std::string(name) + " must be a " + (cost ? "number" : "whole number") +
                                     " of at least 0");
    }
    if (name == "time_ms") {
      budget.time = std::chrono::milliseconds(std::min<std::int64_t>(*number, 1'000'000'000'000));
    } else if (name == "attempts") {
      if (*number < 1) return fail(Errc::invalid, "budget.attempts must be at least 1");
      budget.attempts = *number;
    } else if (name == "tokens") {
      budget.tokens = *number;
    } else {
      budget.cost_micros = *number;
    }
  }
  return budget;
}

std::optional<std::int64_t> whole_number(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  if (!value.is_double()) return std::nullopt;
  const double real = value.get_double();
  constexpr double kExactMax = 9007199254740992;  // 2⁵³: from here on a double may represent several whole numbers
  if (std::trunc(real) != real || std::abs(real) > kExactMax) return std::nullopt;
  return static_cast<std::int64_t>(real);
}

std::string text_at(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::vector<std::string> texts_at(const json::object& object, std::string_view name) {
  std::vector<std::string> out;
  const json::value* const list = object.if_contains(name);
  if (list == nullptr || !list->is_array()) return out;
  for (const json::value& each : list->get_array()) {
    if (each.is_string()) out.emplace_back(each.get_string());
  }
  return out;
}

json::array texts_value(const std::vector<std::string>& texts) {
  json::array array;
  for (const std::string& each : texts) array.push_back(text_value(each));
  return array;
}

std::optional<std::int64_t> maybe_number_at(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  if (value == nullptr || !value->is_int64()) return std::nullopt;
  return value->get_int64();
}

std::int64_t number_at(const json::object& object, std::string_view name) {
  return maybe_number_at(object, name).value_or(0);
}

bool flag_at(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

std::optional<WallTime> time_at(const json::object& object, std::string_view name) {
  const auto number = maybe_number_at(object, name);
  if (!number) return std::nullopt;
  return WallTime(std::chrono::milliseconds(*number));
}

Result<json::object> parse_object(std::string_view text, json::storage_ptr memory) {
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = kDepthMax;
  json::value value = json::parse(text, error, std::move(memory), options);
  if (error) return fail(Errc::invalid, "invalid JSON: " + error.message());
  if (!value.is_object()) return fail(Errc::invalid, "this is not a JSON object");
  return std::move(value.get_object());
}

}  // namespace stint::wire
