#include "net/http_text.hpp"

#include "net/text.hpp"

#include <charconv>

namespace stint::net {
namespace {

constexpr std::string_view kSlashes = "://";

/// Host and port, without user and password.
std::string_view authority_of(std::string_view url) noexcept {
  const std::size_t scheme = url.find(kSlashes);
  if (scheme != std::string_view::npos) url.remove_prefix(scheme + kSlashes.size());
  std::string_view authority = url.substr(0, url.find_first_of("/?#"));
  const std::size_t at = authority.rfind('@');
  return at == std::string_view::npos ? authority : authority.substr(at + 1);
}

}  // namespace

std::string shown_url(std::string_view url) {
  const std::size_t scheme = url.find(kSlashes);
  std::string out(scheme == std::string_view::npos ? std::string_view() : url.substr(0, scheme + kSlashes.size()));
  out += authority_of(url);
  std::string_view rest = url.substr(out.empty() || scheme == std::string_view::npos ? 0 : scheme + kSlashes.size());
  const std::size_t path = rest.find_first_of("/?#");
  if (path == std::string_view::npos) return out;
  rest.remove_prefix(path);
  out += rest.substr(0, rest.find_first_of("?#"));
  return out;
}

bool is_loopback_url(std::string_view url) noexcept {
  const std::string_view authority = authority_of(url);
  if (authority.starts_with("[::1]")) return true;
  const std::string_view host = authority.substr(0, authority.find(':'));
  constexpr std::string_view kDigits = "0123456789.";
  return equal_nocase(host, "localhost") ||
         (host.starts_with("127.") && host.find_first_not_of(kDigits) == std::string_view::npos);
}

std::optional<std::pair<std::string, std::string>> parse_header(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  constexpr std::string_view kSpace = " \t\r\n";
  std::string_view value = line.substr(colon + 1);
  const std::size_t begin = value.find_first_not_of(kSpace);
  value = begin == std::string_view::npos ? std::string_view() : value.substr(begin);
  value = value.substr(0, value.find_last_not_of(kSpace) + 1);
  return std::pair(std::string(line.substr(0, colon)), std::string(value));
}

std::optional<int> parse_status_line(std::string_view line) noexcept {
  if (!line.starts_with("HTTP/")) return std::nullopt;
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  int status = 0;
  const auto [end, error] = std::from_chars(line.data() + space + 1, line.data() + line.size(), status);
  if (error != std::errc() || status < 100 || status > 999) return std::nullopt;
  return status;
}

bool is_header_text(std::string_view text) noexcept {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

}  // namespace stint::net
