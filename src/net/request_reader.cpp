#include "net/request_reader.hpp"

#include "net/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace stint::net {
namespace {

constexpr std::uint8_t kSkippedBytesMax = 4;             // empty lines before a request
constexpr std::size_t kBodyReservedBytesMax = 64 << 10;  // before the bytes of the announced length have arrived

constexpr std::string_view kMalformed = "Malformed HTTP request.";

constexpr std::string_view kLineEnd = "\r\n";

/// Whether the connection stays open after the answer.
struct Persistence {
  bool closes = false;
  bool keeps = false;

  /// Reads the tokens of a `Connection` header. False if it is malformed.
  bool read(std::string_view value) noexcept {
    while (!value.empty()) {
      const std::size_t comma = std::min(value.find(','), value.size());
      const std::string_view word = trimmed(value.substr(0, comma));
      if (!word.empty() && !is_name(word)) return false;
      closes = closes || equal_nocase(word, "close");
      keeps = keeps || equal_nocase(word, "keep-alive");
      value.remove_prefix(std::min(comma + 1, value.size()));
    }
    return true;
  }
};

/// Headers of which only the first is read: a proxy may read the last. Sorted by use, not by name.
constexpr std::array<std::string_view, 8> kSingleHeaders = {"content-type",     "authorization", "idempotency-key",
                                                            "origin",           "traceparent",   "last-event-id",
                                                            "content-encoding", "expect"};

bool is_doubled(const std::vector<Field>& headers) noexcept {
  for (const std::string_view single : kSingleHeaders) {
    const auto same = [&](const Field& field) {
      return field.name.size() == single.size() && equal_nocase(field.name, single);
    };
    if (std::ranges::count_if(headers, same) > 1) return true;
  }
  return false;
}

/// Such as `HTTP/2.0`: a valid version, but not supported here.
bool is_version(std::string_view text) noexcept {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return text.size() == 8 && text.starts_with("HTTP/") && digit(text[5]) && text[6] == '.' && digit(text[7]);
}

}  // namespace

void RequestReader::next() {
  request_.clear();
  scan_.reset();
  refusal_ = {};
  state_ = State::head;
  begun_ = chunked_ = false;
  left_ = 0;
  skipped_ = 0;
}

bool RequestReader::refuse(unsigned status, std::string_view detail) noexcept {
  state_ = State::refused;
  refusal_ = {status, detail};
  return false;
}

std::size_t RequestReader::feed(std::string_view bytes) {
  if (bytes.empty()) return 0;
  if (state_ == State::head) return feed_head(bytes);
  if (state_ == State::body) return feed_body(bytes);
  return 0;
}

std::size_t RequestReader::skip_empty_lines(std::string_view bytes) {
  std::size_t used = 0;
  while (used < bytes.size() && (bytes[used] == '\r' || bytes[used] == '\n') && state_ == State::head) {
    ++used;
    if (++skipped_ > kSkippedBytesMax) refuse(400, kMalformed);
  }
  return used;
}

std::size_t RequestReader::feed_head(std::string_view bytes) {
  std::size_t used = 0;
  if (!begun_) {
    used = skip_empty_lines(bytes);
    bytes.remove_prefix(used);
    if (bytes.empty() || state_ != State::head) return used;
    begun_ = true;
  }
  std::string& text = request_.text_;
  const std::string_view piece = bytes.substr(0, limits_.header_bytes_max - text.size());
  const std::size_t taken = scan_.feed(piece);
  text.append(piece.substr(0, taken));
  used += taken;
  switch (scan_.state()) {
    case HeadScan::State::bad: refuse(400, "The request head contains a byte that is not allowed there."); break;
    case HeadScan::State::end: parse_head(); break;
    case HeadScan::State::more:
      if (text.size() < limits_.header_bytes_max) break;
      if (scan_.in_first_line()) {
        refuse(414, "The request line is too long.");
      } else {
        refuse(431, "The headers are too large.");
      }
  }
  return used;
}

/// Parses a head that the scan has checked: lines end with CR LF, none is folded, the last one is empty, no control
/// characters.
void RequestReader::parse_head() {
  const std::string_view text = request_.text_;
  const std::size_t first = text.find(kLineEnd);
  if (!parse_line(text.substr(0, first)) || !parse_fields(text.substr(first + kLineEnd.size()))) return;
  if (request_.target.size() > limits_.target_bytes_max) {
    refuse(414, "The request target is too long.");
    return;
  }
  if (!check_fields()) return;
  if (!parse_target(request_.target, request_.decoded_, request_.parts)) {
    refuse(400, "The request target is malformed.");
    return;
  }
  if (!request_.parts.authority.empty()) request_.host = request_.parts.authority;
  request_.has_body = chunked_ || left_ > 0;
  if (chunked_) chunks_ = ChunkDecoder(limits_.body_bytes_max);
  if (left_ > 0) request_.body.reserve(std::min<std::uint64_t>(left_, kBodyReservedBytesMax));
  state_ = request_.has_body ? State::body : State::done;
}

/// `GET /path HTTP/1.1`, with one space each.
bool RequestReader::parse_line(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == last) return refuse(400, kMalformed);
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  const bool whole = target.find(' ') == std::string_view::npos && target.find('\t') == std::string_view::npos;
  if (!is_name(method) || target.empty() || !whole || !is_version(version)) return refuse(400, kMalformed);
  if (version != "HTTP/1.1" && version != "HTTP/1.0")
    return refuse(505, "This server supports HTTP/1.1 and HTTP/1.0 only.");
  request_.method = method;
  request_.target = target;
  request_.version = version.ends_with('1') ? 11 : 10;
  return true;
}

/// `Name: value` in each line, and an empty line.
bool RequestReader::parse_fields(std::string_view lines) {
  while (lines.size() > kLineEnd.size()) {
    const std::size_t end = lines.find('\r');
    const std::string_view line = lines.substr(0, end);
    const std::size_t colon = line.find(':');
    const std::string_view name = line.substr(0, colon);
    if (colon == std::string_view::npos || !is_name(name)) return refuse(400, kMalformed);
    if (request_.headers.size() == limits_.headers_max) return refuse(431, "There are too many headers.");
    request_.headers.push_back({name, trimmed(line.substr(colon + 1))});
    lines.remove_prefix(end + kLineEnd.size());
  }
  return true;
}

bool RequestReader::check_length(std::string_view value) {
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), left_);
  const bool digits = value.find_first_not_of("0123456789") == std::string_view::npos;
  if (!digits || problem != std::errc() || end != value.data() + value.size()) {
    refuse(400, "The Content-Length is not a number.");
  } else if (left_ > limits_.body_bytes_max) {
    refuse(413, "The body is too large.");
  }
  return state_ != State::refused;
}

/// Reads the headers that decide where the request ends and which host it is for.
bool RequestReader::check_fields() {
  int hosts = 0;
  int lengths = 0;
  int encodings = 0;
  std::string_view length;
  bool expects_other = false;
  Persistence after;
  for (const auto& [name, value] : request_.headers) {
    switch (name.size()) {
      case 4:
        if (!equal_nocase(name, "host")) break;
        ++hosts;
        request_.host = value;
        break;
      case 6:
        if (!equal_nocase(name, "expect")) break;
        request_.expects_continue = request_.version >= 11 && equal_nocase(value, "100-continue");
        expects_other = !equal_nocase(value, "100-continue");
        break;
      case 10:
      case 16:
        if (!equal_nocase(name, "connection") && !equal_nocase(name, "proxy-connection")) break;
        if (!after.read(value)) return refuse(400, kMalformed);
        break;
      case 14:
        if (!equal_nocase(name, "content-length")) break;
        ++lengths;
        length = value;
        break;
      case 17:
        if (!equal_nocase(name, "transfer-encoding")) break;
        ++encodings;
        chunked_ = equal_nocase(value, "chunked");
        break;
      default: break;
    }
  }
  if (hosts > 1 || (hosts == 0 && request_.version >= 11)) {
    refuse(400, "The request must have exactly one Host header.");
  } else if (lengths + encodings > 1 || (encodings == 1 && request_.version < 11)) {
    refuse(400, "The length of the body is ambiguous: send one Content-Length, or chunked.");
  } else if (is_doubled(request_.headers)) {
    refuse(400, "A header that may be sent only once was sent twice.");
  } else if (encodings == 1 && !chunked_) {
    refuse(501, "The only transfer encoding supported is chunked.");
  } else if (expects_other) {
    refuse(417, "The only expectation supported is 100-continue.");
  }
  if (state_ == State::refused) return false;
  request_.keep_alive = request_.version >= 11 ? !after.closes : after.keeps;
  return lengths == 0 || check_length(length);
}

std::size_t RequestReader::feed_body(std::string_view bytes) {
  if (!chunked_) {
    const std::size_t count = std::min<std::uint64_t>(left_, bytes.size());
    request_.body.append(bytes, 0, count);
    left_ -= count;
    if (left_ == 0) state_ = State::done;
    return count;
  }
  const std::size_t used = chunks_.feed(bytes, request_.body);
  switch (chunks_.state()) {
    case ChunkDecoder::State::more: break;
    case ChunkDecoder::State::end: state_ = State::done; break;
    case ChunkDecoder::State::bad: refuse(400, "The chunks of the body are malformed."); break;
    case ChunkDecoder::State::too_large: refuse(413, "The body is too large."); break;
  }
  return used;
}

}  // namespace stint::net
