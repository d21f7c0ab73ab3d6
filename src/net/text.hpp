/// Character classes of HTTP, independent of the locale: names are compared without regard to case, in ASCII only.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace stint::net {

constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

constexpr bool equal_nocase(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

constexpr bool starts_with_nocase(std::string_view text, std::string_view start) noexcept {
  return text.size() >= start.size() && equal_nocase(text.substr(0, start.size()), start);
}

/// Allowed in a line: no control characters except tab.
constexpr bool is_text(unsigned char byte) noexcept { return (byte >= ' ' && byte != 0x7f) || byte == '\t'; }

namespace detail {

inline constexpr auto kTokenBytes = [] {
  std::array<bool, 256> table{};
  for (const char c : std::string_view("!#$%&'*+-.^_`|~0123456789")) table[static_cast<unsigned char>(c)] = true;
  for (unsigned char c = 'a'; c <= 'z'; ++c) table[c] = table[c - 'a' + 'A'] = true;
  return table;
}();

}  // namespace detail

/// Allowed in a name.
constexpr bool is_token(unsigned char byte) noexcept { return detail::kTokenBytes[byte]; }
constexpr bool is_name(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return is_token(static_cast<unsigned char>(c)); });
}

/// Without surrounding spaces and tabs.
constexpr std::string_view trimmed(std::string_view text) noexcept {
  const auto space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

/// Negative if it is not a hexadecimal digit.
constexpr int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (lower(c) >= 'a' && lower(c) <= 'f') return lower(c) - 'a' + 10;
  return -1;
}

}  // namespace stint::net
