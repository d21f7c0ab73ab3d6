/// Who may come in. A page in the user's browser can send requests to a server on the same machine: under a name that
/// its owner lets point here (DNS rebinding), which `Host` gives away, or straight across origins (CSRF), which
/// `Origin` gives away. And whoever comes in must know the token. Pure.
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
  std::string token;                       ///< empty: none is asked for
  /// Further tokens that are good, such as those of runs. Must take equal time for wrong ones.
  std::function<bool(std::string_view)> other_token;
  /// Requests that need no token: probes, the files of a web page.
  std::function<bool(const Request&)> is_open;
};

/// Nothing: come in. Else 421 for a wrong host, 403 for a wrong origin, 401 for a missing or wrong token.
[[nodiscard]] std::optional<Refusal> check(const Request& request, const GuardRules& rules);

/// Without the port and the brackets: "[::1]:80" → "::1". Nothing if it is no host and port.
[[nodiscard]] std::optional<std::string_view> host_of(std::string_view authority) noexcept;
/// An address in figures. Nobody's DNS lets such a name point here.
[[nodiscard]] bool is_address(std::string_view host) noexcept;
/// "localhost", "x.localhost", 127.0.0.0/8 and ::1.
[[nodiscard]] bool is_loopback(std::string_view host) noexcept;
/// Loopback, the address that the server listens on (if that is all of them: any address), and what the rules name.
[[nodiscard]] bool host_allowed(std::string_view authority, const GuardRules& rules) noexcept;
/// Whether a page of that origin was loaded from the host that the request is for. The names of loopback are one host.
[[nodiscard]] bool same_origin(std::string_view origin, std::string_view authority) noexcept;
/// Takes a time that depends on the length of `given` only.
[[nodiscard]] bool same_secret(std::string_view given, std::string_view secret) noexcept;

}  // namespace stint::http
