/// Reads the name of an enumerator: the inverse of its `to_string`. Internal to this folder.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace stint::domain {

/// The value with that name, out of `all`.
template <class Enum, std::size_t kCount>
[[nodiscard]] std::optional<Enum> parse_name(std::string_view name, const std::array<Enum, kCount>& all) noexcept {
  const auto found = std::ranges::find_if(all, [&](Enum value) { return to_string(value) == name; });
  return found == all.end() ? std::nullopt : std::optional(*found);
}

}  // namespace stint::domain
