/// The answer of a handler, and how its head is written. Failures are problem documents (RFC 9457), made in one place.
#pragma once

#include "stint/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint::http {

inline constexpr std::string_view kJson = "application/json";
inline constexpr std::string_view kProblemJson = "application/problem+json";
inline constexpr std::string_view kText = "text/plain; charset=utf-8";

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Response {
  unsigned status = 200;
  std::string_view content_type = kJson;  ///< a literal; empty: no such header
  Headers headers{};                      ///< further ones; line breaks in them become spaces
  std::string body{};
  bool streamed = false;  ///< already being sent, see `Exchange::stream`; all other fields are ignored
};

/// The head of an answer whose body is sent in pieces.
struct StreamHead {
  unsigned status = 200;
  std::string_view content_type = kText;  ///< a literal
  Headers headers{};
  /// Heartbeat: sent after silence of `ServerOptions::heartbeat_every`. A literal; empty: none.
  std::string_view heartbeat{};
  /// Its pieces stand alone and it has no natural end: a server that stops ends it properly, with a last chunk.
  bool endless = false;
};

struct Problem {
  unsigned status = 500;
  std::string detail{};                    ///< what failed, with which value, and what to do about it
  std::string type = "about:blank";        ///< a URI for the kind of problem
  std::string title{};                     ///< empty: the status' own phrase
  std::string list{};                      ///< path of the API that lists what exists, if a name does not; empty: none
  std::optional<std::uint64_t> matched{};  ///< how many runs match, where another number was expected
};

/// `{"type":…,"title":…,"status":…,"detail":…}`, and `list` if there is one. Bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] Response problem_response(const Problem& problem);
[[nodiscard]] inline Response problem_response(unsigned status, std::string_view detail) {
  return problem_response(Problem{.status = status, .detail = std::string(detail)});
}

[[nodiscard]] std::string_view reason_phrase(unsigned status) noexcept;

/// What the connection adds to an answer.
struct HeadFacts {
  bool old_version = false;  ///< the request was HTTP/1.0
  bool keep_alive = true;
  std::string_view date{};  ///< a whole `Date:` line; empty: the server has no clock
};
void append_head(std::string& out, const Response& response, const HeadFacts& facts);
void append_head(std::string& out, const StreamHead& head, const HeadFacts& facts);
/// `1a\r\n…\r\n`; nothing for an empty piece, which would be the last chunk.
void append_chunk(std::string& out, std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

/// 204 and 304, and everything below 200.
[[nodiscard]] constexpr bool has_no_body(unsigned status) noexcept {
  return status < 200 || status == 204 || status == 304;
}

/// `Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n`.
[[nodiscard]] std::string date_line(std::chrono::system_clock::time_point now);

}  // namespace stint::http
