/// Text of a request that we make: the part of a URL that may be shown, and the parts of a header line. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace stint::net {

/// `https://user:pass@host/path?key=secret` → `https://host/path`: for errors and logs.
[[nodiscard]] std::string shown_url(std::string_view url);
/// Whether its host is this machine by name or address: such a request never uses a proxy.
[[nodiscard]] bool is_loopback_url(std::string_view url) noexcept;

/// `Name: value` → both, without space around the value. Nothing for any other line.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> parse_header(std::string_view line);
/// `HTTP/1.1 200 OK` → 200.
[[nodiscard]] std::optional<int> parse_status_line(std::string_view line) noexcept;
/// Whether the text is safe in a header: a line break would start another header.
[[nodiscard]] bool is_header_text(std::string_view text) noexcept;

}  // namespace stint::net
