/// Letters without regard to case, as HTTP compares names: ASCII only, whatever the locale says.
#pragma once

#include <algorithm>
#include <string_view>

namespace stint::http {

constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

constexpr bool equal_nocase(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

constexpr bool starts_with_nocase(std::string_view text, std::string_view start) noexcept {
  return text.size() >= start.size() && equal_nocase(text.substr(0, start.size()), start);
}

}  // namespace stint::http
