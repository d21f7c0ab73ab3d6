#include "http/negotiate.hpp"

#include "agent/text.hpp"
#include "net/text.hpp"

#include <optional>

namespace stint::http {
namespace {

using net::equal_nocase;
using net::trimmed;

constexpr std::string_view kStream = "text/event-stream", kJsonType = "application/json", kHtml = "text/html";

/// The text up to the separator; `text` keeps what follows it.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view part = trimmed(text.substr(0, end));
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return part;
}

/// `q` of a media range, in thousandths; an invalid number counts as 1, as if it were absent.
int quality(std::string_view parameters) {
  while (!parameters.empty()) {
    std::string_view value = take_until(parameters, ';');
    const std::string_view name = take_until(value, '=');
    if (!equal_nocase(name, "q") || value.empty() || value.front() != '0') continue;
    int thousandths = 0;
    int step = 100;
    for (const char c : value.substr(std::min<std::size_t>(2, value.size()))) {
      if (c < '0' || c > '9') break;
      thousandths += (c - '0') * step;
      step /= 10;
    }
    return thousandths;
  }
  return 1000;
}

/// Nothing: no header of that name lists the value.
std::optional<int> wanted(const net::Request& request, std::string_view type, std::string_view name = "accept") {
  std::optional<int> found;
  for (const net::Field& header : request.headers) {
    if (!equal_nocase(header.name, name)) continue;
    std::string_view rest = header.value;
    while (!rest.empty()) {
      std::string_view range = take_until(rest, ',');
      if (equal_nocase(take_until(range, ';'), type)) found = std::max(found.value_or(0), quality(range));
    }
  }
  return found;
}

}  // namespace

bool accepts_stream(const net::Request& request) {
  const int stream = wanted(request, kStream).value_or(0);
  return stream > 0 && stream >= wanted(request, kJsonType).value_or(0);
}

bool accepts_html(const net::Request& request) { return wanted(request, kHtml).value_or(0) > 0; }

bool accepts_gzip(const net::Request& request) {
  constexpr std::string_view kHeader = "accept-encoding";
  const auto named = wanted(request, "gzip", kHeader);
  return (named ? *named : wanted(request, "*", kHeader).value_or(0)) > 0;
}

bool sends_json(const net::Request& request) {
  const auto given = request.header("content-type");
  if (!given || request.body.empty()) return true;
  std::string_view rest = *given;
  const std::string_view type = take_until(rest, ';');
  constexpr std::string_view kSuffix = "+json", kAny = "application/";
  const bool ends_so = type.size() > kSuffix.size() && equal_nocase(type.substr(type.size() - kSuffix.size()), kSuffix);
  return equal_nocase(type, kJsonType) || (ends_so && net::starts_with_nocase(type, kAny));
}

std::string wrong_text(const net::Request& request) {
  const auto is_wrong = [](std::string_view text) {
    return agent::utf8_error(text) || text.find('\0') != std::string_view::npos;
  };
  for (const std::string_view segment : request.segments()) {
    if (is_wrong(segment)) return "the path has a segment that is not UTF-8, or contains a NUL character";
  }
  for (const net::Field& field : request.parts.query) {
    if (is_wrong(field.name)) return "the query has a name that is not UTF-8, or contains a NUL character";
    if (is_wrong(field.value)) {
      return "the parameter '" + agent::excerpt(field.name) + "' is not UTF-8, or contains a NUL character";
    }
  }
  return {};
}

}  // namespace stint::http
