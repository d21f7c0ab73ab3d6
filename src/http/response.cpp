#include "http/response.hpp"

#include "agent/text.hpp"
#include "wire/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>

namespace stint::http {
namespace {

struct Phrase {
  unsigned status;
  std::string_view phrase;
};
constexpr Phrase kPhrases[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

void append_number(std::string& out, std::size_t number, int base = 10) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof(digits), number, base);
  out.append(digits, end.ptr);
}

/// A line break in a value would start another header, or the body.
void append_line_safe(std::string& out, std::string_view text) {
  for (const char c : text) out += c == '\r' || c == '\n' || c == '\0' ? ' ' : c;
}

void append_start(std::string& out, unsigned status, const HeadFacts& facts) {
  if (status == 200) {
    out += "HTTP/1.1 200 OK\r\n";
  } else {
    out += "HTTP/1.1 ";
    append_number(out, status);
    out += ' ';
    out += reason_phrase(status);
    out += "\r\n";
  }
  out += facts.date;
  if (!facts.keep_alive) {
    out += "Connection: close\r\n";
  } else if (facts.old_version) {
    out += "Connection: keep-alive\r\n";
  }
}

void append_headers(std::string& out, std::string_view content_type, const Headers& headers) {
  if (!content_type.empty()) {
    out += "Content-Type: ";
    out += content_type;
    out += "\r\n";
  }
  for (const auto& [name, value] : headers) {
    append_line_safe(out, name);
    out += ": ";
    append_line_safe(out, value);
    out += "\r\n";
  }
}

constexpr std::size_t kDetailBytesMax = 1024;  // quoted values are cut earlier, so that the remedy stays

/// Length in bytes of a leading character that a reader can't see but a terminal obeys: a control character (C0, DEL,
/// C1), a zero-width mark or one that changes the reading direction. 0: the text begins with none.
std::size_t hidden_bytes(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  if (byte(0) < 0x20 || byte(0) == 0x7F) return 1;
  if (byte(0) == 0xC2 && byte(1) >= 0x80 && byte(1) <= 0x9F) return 2;
  const bool general = byte(0) == 0xE2 && byte(1) == 0x80;  // U+2000 to U+203F
  if (general && ((byte(2) >= 0x8B && byte(2) <= 0x8F) || (byte(2) >= 0xA8 && byte(2) <= 0xAE))) return 3;
  if (byte(0) == 0xE2 && byte(1) == 0x81 && byte(2) >= 0xA0 && byte(2) <= 0xAF) return 3;
  return byte(0) == 0xEF && byte(1) == 0xBB && byte(2) == 0xBF ? 3 : 0;
}

std::string readable(std::string_view text) {
  const std::string detail = agent::excerpt(text, kDetailBytesMax);
  std::string out;
  for (std::size_t at = 0; at < detail.size();) {
    const std::size_t hidden = hidden_bytes(std::string_view(detail).substr(at));
    out += hidden == 0 ? detail[at] : '?';
    at += std::max<std::size_t>(hidden, 1);
  }
  return out;
}

}  // namespace

std::string_view reason_phrase(unsigned status) noexcept {
  for (const Phrase& known : kPhrases) {
    if (known.status == status) return known.phrase;
  }
  return "Status";
}

Response problem_response(const Problem& problem) {
  Response response;
  response.status = problem.status;
  response.content_type = kProblemJson;
  const std::string detail = readable(problem.detail);
  const std::string_view title =
      problem.title.empty() ? reason_phrase(problem.status) : std::string_view(problem.title);
  response.body = wire::to_json({problem.type, title, problem.status, detail, problem.list, problem.matched}) + '\n';
  if (problem.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

void append_head(std::string& out, const Response& response, const HeadFacts& facts) {
  append_start(out, response.status, facts);
  const bool bodiless = has_no_body(response.status);
  append_headers(out, bodiless ? std::string_view() : response.content_type, response.headers);
  if (!bodiless) {
    out += "Content-Length: ";
    append_number(out, response.body.size());
    out += "\r\n";
  }
  out += "\r\n";
}

void append_head(std::string& out, const StreamHead& head, const HeadFacts& facts) {
  append_start(out, head.status, facts);
  append_headers(out, head.content_type, head.headers);
  out += facts.old_version ? "\r\n" : "Transfer-Encoding: chunked\r\n\r\n";
}

void append_chunk(std::string& out, std::string_view bytes) {
  if (bytes.empty()) return;
  append_number(out, bytes.size(), 16);
  out += "\r\n";
  out += bytes;
  out += "\r\n";
}

std::string date_line(std::chrono::system_clock::time_point now) {
  // Names spelled out: those of the C library follow the locale.
  constexpr std::string_view kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::string_view kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("Date: {}, {:02} {} {:04} {:02}:{:02}:{:02} GMT\r\n", kDays[parts.tm_wday], parts.tm_mday,
                     kMonths[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace stint::http
