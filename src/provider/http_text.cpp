#include "provider/http_text.hpp"

#include <fmt/format.h>

namespace stint::provider {
namespace {

std::string_view reason(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 402: return "Payment Required";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 529: return "Overloaded";
    default: return "Status";
  }
}

}  // namespace

std::string write_head(const Head& head) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\ncontent-type: {}\r\n", head.status, reason(head.status), head.type);
  if (head.length) {
    out += fmt::format("content-length: {}\r\n", *head.length);
  } else {
    out += "transfer-encoding: chunked\r\ncache-control: no-cache\r\n";
  }
  if (!head.keep_alive) out += "connection: close\r\n";
  for (const auto& [name, value] : head.headers) out += fmt::format("{}: {}\r\n", name, value);
  return out + "\r\n";
}

std::string chunk(std::string_view data) {
  if (data.empty()) return {};
  return fmt::format("{:x}\r\n{}\r\n", data.size(), data);
}

}  // namespace stint::provider
