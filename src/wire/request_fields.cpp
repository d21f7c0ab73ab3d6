#include "wire/request_fields.hpp"

#include "agent/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stint::wire {

Result<const json::value*> field(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  if (value != nullptr && value->is_null()) {
    return fail(Errc::invalid, fmt::format("'{}' is null: leave it out, or give it a value", name));
  }
  return value;
}

Result<std::string> text_field(const json::object& object, std::string_view name) {
  STINT_TRY(const json::value* const value, field(object, name));
  if (value == nullptr) return std::string();
  if (!value->is_string()) return fail(Errc::invalid, fmt::format("'{}' must be a string", name));
  return std::string(value->get_string());
}

Result<bool> flag_field(const json::object& object, std::string_view name) {
  STINT_TRY(const json::value* const value, field(object, name));
  if (value == nullptr) return false;
  if (!value->is_bool()) return fail(Errc::invalid, fmt::format("'{}' must be true or false", name));
  return value->get_bool();
}

Result<std::optional<std::int64_t>> number_field(const json::object& object, std::string_view name, std::int64_t least,
                                                 std::int64_t most) {
  STINT_TRY(const json::value* const value, field(object, name));
  if (value == nullptr) return std::nullopt;
  const auto number = whole_number(*value);
  if (!number || *number < least || *number > most) {
    return fail(Errc::invalid, fmt::format("'{}' must be a whole number from {} to {}", name, least, most));
  }
  return number;
}

Result<> only(const json::object& object, std::span<const std::string_view> names) {
  for (const auto& member : object) {
    if (std::ranges::find(names, std::string_view(member.key())) != names.end()) continue;
    std::string known;
    for (const std::string_view name : names) known += (known.empty() ? "" : ", ") + std::string(name);
    return fail(Errc::invalid, "there is no field '" + agent::excerpt(member.key()) + "'; " +
                                   (known.empty() ? "this request takes none" : "allowed: " + known));
  }
  return {};
}

}  // namespace stint::wire
