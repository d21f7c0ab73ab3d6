/// The letters of HTTP, whatever the locale says: names are compared without regard to case, in ASCII only.
#pragma once

#include <algorithm>
#include <string_view>

namespace stint::net {

constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

constexpr bool equal_nocase(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

constexpr bool starts_with_nocase(std::string_view text, std::string_view start) noexcept {
  return text.size() >= start.size() && equal_nocase(text.substr(0, start.size()), start);
}

/// What may stand in a line: no control characters but the tabulator.
constexpr bool is_text(unsigned char byte) noexcept { return (byte >= ' ' && byte != 0x7f) || byte == '\t'; }

/// What may stand in a name.
constexpr bool is_token(unsigned char byte) noexcept {
  const char c = lower(static_cast<char>(byte));
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

/// Negative for what is none.
constexpr int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (lower(c) >= 'a' && lower(c) <= 'f') return lower(c) - 'a' + 10;
  return -1;
}

}  // namespace stint::net
