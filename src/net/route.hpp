/// Where a request goes: through which proxy, and which name has to be resolved first. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace stint::net {

/// An environment: the value of a variable, nothing if it is not set.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;

struct HostPort {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

/// Host and port of a URL or of a proxy's address, which may lack the scheme; nothing if there is no valid port or
/// host.
[[nodiscard]] std::optional<HostPort> host_port_of(std::string_view url, std::uint16_t default_port);

/// Whether the system's resolver is needed for it: not for addresses and `localhost`. Names beyond ASCII are left to
/// libcurl, which encodes them first.
[[nodiscard]] bool needs_lookup(std::string_view host) noexcept;

/// Whether a list such as `localhost,.corp.example,10.0.0.0/8` or `*` covers the host.
[[nodiscard]] bool covers_host(std::string_view no_proxy, std::string_view host) noexcept;

/// The proxy of a URL, empty if none: the variables that curl knows (`https_proxy`, `HTTPS_PROXY`, `http_proxy`,
/// `all_proxy`, `ALL_PROXY`), less the hosts of `no_proxy` or `NO_PROXY`. `HTTP_PROXY` doesn't count: a CGI program's
/// caller sets it. A loopback URL never has one.
[[nodiscard]] std::string proxy_of(std::string_view url, const Variables& variables);

/// The name to resolve before the request is given to libcurl: the proxy's, or else the server's.
[[nodiscard]] std::optional<HostPort> name_to_resolve(std::string_view url, std::string_view proxy);

}  // namespace stint::net
