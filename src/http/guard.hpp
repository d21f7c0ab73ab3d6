/// Access checks before any handler. A page in the user's browser can send requests to a server on the same machine:
/// under a name that its owner points here (DNS rebinding), which `Host` reveals, or across origins (CSRF), which
/// `Origin` reveals. Besides, a client needs the token. Pure.
#pragma once

#include "net/request_reader.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::http {

using net::Refusal;
using net::Request;

struct GuardRules {
  std::string listen_host;                 ///< the address that the server is bound to, without brackets
  std::vector<std::string> allowed_hosts;  ///< further names, without port
  std::string token;                       ///< empty: not required
  /// Accepts further tokens, such as those of runs. Must take equal time for wrong ones.
  std::function<bool(std::string_view)> other_token;
  /// Requests that need no token: probes, the files of a web page.
  std::function<bool(const Request&)> is_open;
};

/// Nothing: admitted. Else 421 for a wrong host, 403 for a wrong origin, 401 for a missing or wrong token.
[[nodiscard]] std::optional<Refusal> check(const Request& request, const GuardRules& rules);

/// Without the port and the brackets: "[::1]:80" → "::1". Nothing if it is not a host and port.
[[nodiscard]] std::optional<std::string_view> host_of(std::string_view authority) noexcept;
/// A numeric address. DNS can't point such a name here.
[[nodiscard]] bool is_address(std::string_view host) noexcept;
/// "localhost", "x.localhost", 127.0.0.0/8 and ::1.
[[nodiscard]] bool is_loopback(std::string_view host) noexcept;
/// Loopback, the address that the server listens on (any address if it listens on all), and the names in the rules.
[[nodiscard]] bool host_allowed(std::string_view authority, const GuardRules& rules) noexcept;
/// Whether a page of that origin was loaded from the host of the request. All names of loopback count as one host.
[[nodiscard]] bool same_origin(std::string_view origin, std::string_view authority) noexcept;
/// Takes time that depends only on the length of `given`.
[[nodiscard]] bool same_secret(std::string_view given, std::string_view secret) noexcept;

}  // namespace stint::http
