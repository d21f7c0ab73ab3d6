/// The text around a request that we make: what of a URL may be shown, what a header line says. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace stint::net {

/// `https://user:pass@host/path?key=secret` → `https://host/path`: for errors and logs.
[[nodiscard]] std::string shown_url(std::string_view url);
/// Whether its host is this machine by name or address: such a request never goes through a proxy.
[[nodiscard]] bool is_loopback_url(std::string_view url) noexcept;

/// `Name: value` → both, without space around the value. Nothing for any other line.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> parse_header(std::string_view line);
/// `HTTP/1.1 200 OK` → 200.
[[nodiscard]] std::optional<int> parse_status_line(std::string_view line) noexcept;
/// A line break in it would make another header.
[[nodiscard]] bool is_header_text(std::string_view text) noexcept;

}  // namespace stint::net
