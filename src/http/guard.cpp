#include "http/guard.hpp"

#include "net/text.hpp"

#include <algorithm>

namespace stint::http {
namespace {

using net::equal_nocase;
using net::lower;
using net::starts_with_nocase;

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool all_digits(std::string_view text) noexcept { return !text.empty() && std::ranges::all_of(text, is_digit); }

bool is_host_byte(char c) noexcept {
  return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '-' || c == '.' || c == '_' || c == ':';
}

/// Four numbers of up to three digits.
bool is_address_v4(std::string_view host) noexcept {
  int dots = 0;
  int digits = 0;  // since the last dot
  for (const char c : host) {
    if (c == '.' && digits > 0) {
      ++dots;
      digits = 0;
    } else if (!is_digit(c) || ++digits > 3) {
      return false;
    }
  }
  return dots == 3 && digits > 0;
}

struct Origin {
  std::string_view authority;
  std::string_view default_port;
};

std::optional<Origin> parse_origin(std::string_view text) noexcept {
  for (const auto& [scheme, port] : {std::pair("http://", ":80"), std::pair("https://", ":443")}) {
    const std::string_view prefix = scheme;
    if (starts_with_nocase(text, prefix)) return Origin{text.substr(prefix.size()), port};
  }
  return std::nullopt;
}

/// The port with its colon; empty: none.
std::string_view port_of(std::string_view authority) noexcept {
  const std::size_t close = authority.find(']');
  const std::size_t colon = authority.find(':', close == std::string_view::npos ? 0 : close);
  return colon == std::string_view::npos ? std::string_view() : authority.substr(colon);
}

std::string_view without_port(std::string_view authority, std::string_view port) noexcept {
  return authority.ends_with(port) ? authority.substr(0, authority.size() - port.size()) : authority;
}

}  // namespace

std::optional<std::string_view> host_of(std::string_view authority) noexcept {
  std::string_view host = authority;
  std::string_view rest;
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    host = authority.substr(1, close - 1);
    rest = authority.substr(close + 1);
  } else if (const std::size_t colon = authority.find(':'); colon != std::string_view::npos) {
    host = authority.substr(0, colon);
    rest = authority.substr(colon);
  }
  const bool port = rest.empty() || (rest.starts_with(':') && (rest.size() == 1 || all_digits(rest.substr(1))));
  if (host.empty() || !port || !std::ranges::all_of(host, is_host_byte)) return std::nullopt;
  return host;
}

bool is_address(std::string_view host) noexcept {
  return is_address_v4(host) || host.find(':') != std::string_view::npos;
}

bool is_loopback(std::string_view host) noexcept {
  if (host == "::1" || (host.starts_with("127.") && is_address_v4(host))) return true;
  constexpr std::string_view kName = "localhost";
  if (host.size() < kName.size() || !equal_nocase(host.substr(host.size() - kName.size()), kName)) return false;
  return host.size() == kName.size() || host[host.size() - kName.size() - 1] == '.';
}

bool host_allowed(std::string_view authority, const GuardRules& rules) noexcept {
  const auto host = host_of(authority);
  if (!host) return false;
  if (is_loopback(*host) || equal_nocase(*host, rules.listen_host)) return true;
  const bool listens_everywhere = rules.listen_host == "0.0.0.0" || rules.listen_host == "::";
  if (listens_everywhere && is_address(*host)) return true;
  return std::ranges::any_of(rules.allowed_hosts, [&](const std::string& name) { return equal_nocase(*host, name); });
}

bool same_origin(std::string_view origin, std::string_view authority) noexcept {
  const auto parsed = parse_origin(origin);
  if (!parsed || parsed->authority.empty()) return false;
  const std::string_view port = parsed->default_port;
  const std::string_view from = without_port(parsed->authority, port), to = without_port(authority, port);
  if (equal_nocase(from, to)) return true;
  const auto from_host = host_of(from), to_host = host_of(to);
  return from_host && to_host && is_loopback(*from_host) && is_loopback(*to_host) && port_of(from) == port_of(to);
}

bool same_secret(std::string_view given, std::string_view secret) noexcept {
  if (secret.empty()) return false;
  volatile unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    difference = difference | static_cast<unsigned char>(given[i] ^ secret[i % secret.size()]);
  }
  return difference == 0;
}

std::optional<Refusal> check(const Request& request, const GuardRules& rules) {
  // HTTP/1.0 may omit Host; no browser does.
  if (!request.host.empty() || request.version >= 11) {
    if (!host_allowed(request.host, rules)) {
      return Refusal{421,
                     "The Host header does not name this server. Use its address, or allow the name in its settings."};
    }
  }
  if (const auto origin = request.header("origin"); origin && !same_origin(*origin, request.host)) {
    return Refusal{403, "The Origin header names another site: only pages of this server may send requests to it."};
  }
  if (rules.token.empty() || (rules.is_open && rules.is_open(request))) return std::nullopt;
  const auto token = request.bearer();
  if (token && (same_secret(*token, rules.token) || (rules.other_token && rules.other_token(*token)))) {
    return std::nullopt;
  }
  return Refusal{401, "The token is missing or wrong: send the header `Authorization: Bearer TOKEN`."};
}

}  // namespace stint::http
