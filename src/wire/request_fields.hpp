/// Members of a client's request. A member that is unknown, null or of the wrong type is refused by name. Internal to
/// this folder.
#pragma once

#include "wire/values.hpp"

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stint::wire {

/// Null pointer: absent.
[[nodiscard]] Result<const json::value*> field(const json::object& object, std::string_view name);
/// Empty if absent.
[[nodiscard]] Result<std::string> text_field(const json::object& object, std::string_view name);
/// False if absent.
[[nodiscard]] Result<bool> flag_field(const json::object& object, std::string_view name);
[[nodiscard]] Result<std::optional<std::int64_t>> number_field(const json::object& object, std::string_view name,
                                                               std::int64_t least, std::int64_t most);
/// Refuses members of other names.
[[nodiscard]] Result<> only(const json::object& object, std::span<const std::string_view> names);
[[nodiscard]] inline Result<> only(const json::object& object, std::initializer_list<std::string_view> names) {
  return only(object, std::span(names.begin(), names.size()));
}

}  // namespace stint::wire
