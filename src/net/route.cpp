#include "net/route.hpp"

#include "net/http_text.hpp"
#include "net/text.hpp"

#include <arpa/inet.h>
#include <array>
#include <charconv>

namespace stint::net {
namespace {

constexpr std::string_view kSlashes = "://";
constexpr std::uint16_t kProxyPort = 1080;  // libcurl's default

std::string_view scheme_of(std::string_view url) noexcept {
  const std::size_t at = url.find(kSlashes);
  return at == std::string_view::npos ? std::string_view() : url.substr(0, at);
}

std::optional<std::uint16_t> parse_port(std::string_view text) noexcept {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

/// The bytes of an address of either family; nothing for a name.
struct Address {
  std::array<unsigned char, 16> bytes{};
  std::size_t size = 0;
};
Address parse_address(std::string_view text) noexcept {
  Address address;
  const std::string terminated(text);
  if (::inet_pton(AF_INET, terminated.c_str(), address.bytes.data()) == 1) {
    address.size = 4;
  } else if (::inet_pton(AF_INET6, terminated.c_str(), address.bytes.data()) == 1) {
    address.size = 16;
  }
  return address;
}

std::string_view without_brackets(std::string_view host) noexcept {
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

/// `entry` is an address, or a network as `10.0.0.0/8`.
bool covers_address(std::string_view entry, const Address& host) noexcept {
  const std::size_t slash = entry.find('/');
  const Address network = parse_address(without_brackets(entry.substr(0, slash)));
  if (network.size != host.size) return false;
  std::size_t bits = 8 * network.size;
  if (slash != std::string_view::npos) {
    const std::string_view digits = entry.substr(slash + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (error != std::errc() || bits > 8 * network.size) return false;
  }
  for (std::size_t i = 0; i < bits; ++i) {
    const unsigned mask = 0x80U >> (i % 8);
    if ((network.bytes[i / 8] & mask) != (host.bytes[i / 8] & mask)) return false;
  }
  return true;
}

/// `example.com` and `.example.com` cover that host and every host below it.
bool covers_name(std::string_view entry, std::string_view host) noexcept {
  if (entry.starts_with('.')) entry.remove_prefix(1);
  if (entry.ends_with('.')) entry.remove_suffix(1);
  if (entry.empty() || host.size() < entry.size()) return false;
  if (!equal_nocase(host.substr(host.size() - entry.size()), entry)) return false;
  return host.size() == entry.size() || host[host.size() - entry.size() - 1] == '.';
}

}  // namespace

std::optional<HostPort> host_port_of(std::string_view url, std::uint16_t default_port) {
  if (const std::size_t scheme = url.find(kSlashes); scheme != std::string_view::npos) {
    url.remove_prefix(scheme + kSlashes.size());
  }
  url = url.substr(0, url.find_first_of("/?#"));
  if (const std::size_t at = url.rfind('@'); at != std::string_view::npos) url.remove_prefix(at + 1);
  const std::size_t bracket = url.rfind(']');
  const std::size_t colon = url.find(':', bracket == std::string_view::npos ? 0 : bracket);
  const std::string_view host = without_brackets(url.substr(0, colon));
  if (host.empty()) return std::nullopt;
  if (colon == std::string_view::npos || colon + 1 == url.size()) return HostPort{std::string(host), default_port};
  const auto port = parse_port(url.substr(colon + 1));
  if (!port) return std::nullopt;
  return HostPort{std::string(host), *port};
}

bool needs_lookup(std::string_view host) noexcept {
  if (equal_nocase(host, "localhost") || host.ends_with(".localhost") || host.ends_with(".onion")) return false;
  const bool plain = std::ranges::all_of(host, [](char c) {
    return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
  });
  return plain && parse_address(host).size == 0;
}

bool covers_host(std::string_view no_proxy, std::string_view host) noexcept {
  host = without_brackets(host);
  if (host.ends_with('.')) host.remove_suffix(1);
  const Address address = parse_address(host);
  while (!no_proxy.empty()) {
    const std::size_t end = no_proxy.find_first_of(", \t");
    const std::string_view entry = no_proxy.substr(0, end);
    no_proxy.remove_prefix(end == std::string_view::npos ? no_proxy.size() : end + 1);
    if (entry.empty()) continue;
    if (entry == "*") return true;
    if (address.size == 0 ? covers_name(entry, host) : covers_address(entry, address)) return true;
  }
  return false;
}

std::string proxy_of(std::string_view url, const Variables& variables) {
  const auto host = host_port_of(url, 1);
  if (!host || is_loopback_url(url)) return {};
  const auto first = [&variables](std::initializer_list<const char*> names) -> std::string {
    for (const char* name : names) {
      if (auto value = variables(name); value && !value->empty()) return *std::move(value);
    }
    return {};
  };
  if (covers_host(first({"no_proxy", "NO_PROXY"}), host->host)) return {};
  if (equal_nocase(scheme_of(url), "https")) return first({"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"});
  return first({"http_proxy", "all_proxy", "ALL_PROXY"});
}

std::optional<HostPort> name_to_resolve(std::string_view url, std::string_view proxy) {
  const std::string_view own = scheme_of(url);
  if (!equal_nocase(own, "http") && !equal_nocase(own, "https")) return std::nullopt;  // libcurl refuses it
  const std::string_view scheme = proxy.empty() ? own : scheme_of(proxy);
  const bool tls = equal_nocase(scheme, "https");
  std::uint16_t port = tls ? 443 : 80;
  if (!proxy.empty() && !tls) port = kProxyPort;
  auto target = host_port_of(proxy.empty() ? url : proxy, port);
  if (!target || !needs_lookup(target->host)) return std::nullopt;
  return target;
}

}  // namespace stint::net
