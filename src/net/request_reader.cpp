#include "net/request_reader.hpp"

#include "net/text.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include <algorithm>
#include <charconv>
#include <limits>

namespace stint::net {
namespace {

namespace beast = boost::beast;
using boost::system::error_code;

constexpr std::uint8_t kSkippedBytesMax = 4;             // empty lines before a request
constexpr std::size_t kBodyReservedBytesMax = 64 << 10;  // on the client's word alone

constexpr std::string_view kMalformed = "The request is no HTTP.";

std::string_view to_std(beast::string_view text) noexcept { return {text.data(), text.size()}; }

/// What the parser finds, put into the request. Its views point into the request's text.
class Sink final : public beast::http::basic_parser<true> {
 public:
  Sink(Request& request, std::size_t headers_max) : request_(request), headers_max_(headers_max) {
    header_limit(std::numeric_limits<std::uint32_t>::max());  // ours held before
    body_limit(boost::none);                                  // ours comes after
  }
  bool too_many() const noexcept { return too_many_; }

 private:
  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target, int version,
                       error_code&) override {
    request_.method = to_std(method);
    request_.target = to_std(target);
    request_.version = version;
  }
  void on_field_impl(beast::http::field, beast::string_view name, beast::string_view value,
                     error_code& error) override {
    if (request_.headers.size() == headers_max_) {
      too_many_ = true;
      error = beast::http::error::header_limit;
      return;
    }
    request_.headers.push_back({to_std(name), to_std(value)});
  }
  // Bodies never come here: the parser is given the head alone.
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(beast::string_view, error_code&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view, error_code&) override { return 0; }
  void on_finish_impl(error_code&) override {}
  void on_response_impl(int, beast::string_view, int, error_code&) override {}

  Request& request_;
  const std::size_t headers_max_;
  bool too_many_ = false;
};

/// Such as `GET / HTTP/2.0`: understood, but not spoken here.
bool names_other_version(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\r'));
  constexpr std::string_view kForm = "HTTP/d.d";
  if (line.size() < kForm.size() || std::ranges::count(line, ' ') != 2) return false;
  const std::string_view version = line.substr(line.size() - kForm.size());
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return version.starts_with("HTTP/") && digit(version[5]) && version[6] == '.' && digit(version[7]);
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

void RequestReader::refuse(unsigned status, std::string_view detail) noexcept {
  state_ = State::refused;
  refusal_ = {status, detail};
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
    case HeadScan::State::bad: refuse(400, "The head has a byte that may not stand where it stands."); break;
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

void RequestReader::parse_head() {
  Sink sink(request_, limits_.headers_max);
  error_code error;
  const std::size_t used = sink.put(boost::asio::buffer(request_.text_), error);
  if (sink.too_many()) return refuse(431, "There are too many headers.");
  if (error == beast::http::error::bad_version && names_other_version(request_.text_)) {
    return refuse(505, "This server speaks HTTP/1.1 and HTTP/1.0.");
  }
  if (error || used != request_.text_.size() || !sink.is_header_done()) return refuse(400, kMalformed);
  if (request_.target.size() > limits_.target_bytes_max) return refuse(414, "The request target is too long.");
  if (!check_fields()) return;
  if (!parse_target(request_.target, request_.decoded_, request_.parts)) {
    return refuse(400, "The request target can't be read.");
  }
  if (!request_.parts.authority.empty()) request_.host = request_.parts.authority;
  request_.keep_alive = sink.keep_alive();
  request_.has_body = chunked_ || left_ > 0;
  if (chunked_) chunks_ = ChunkDecoder(limits_.body_bytes_max);
  request_.body.reserve(std::min<std::uint64_t>(left_, kBodyReservedBytesMax));
  state_ = request_.has_body ? State::body : State::done;
}

bool RequestReader::check_length(std::string_view value) {
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), left_);
  const bool digits = value.find_first_not_of("0123456789") == std::string_view::npos;
  if (!digits || problem != std::errc() || end != value.data() + value.size()) {
    refuse(400, "The Content-Length is no number.");
  } else if (left_ > limits_.body_bytes_max) {
    refuse(413, "The body is too large.");
  }
  return state_ != State::refused;
}

/// The headers that decide where the request ends and for whom it is.
bool RequestReader::check_fields() {
  int hosts = 0;
  int lengths = 0;
  int encodings = 0;
  std::string_view length;
  bool expects_other = false;
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
    refuse(400, "There must be one Host header.");
  } else if (lengths + encodings > 1 || (encodings == 1 && request_.version < 11)) {
    refuse(400, "It is not certain where the body ends.");
  } else if (encodings == 1 && !chunked_) {
    refuse(501, "The only transfer encoding known here is chunked.");
  } else if (expects_other) {
    refuse(417, "The only expectation known here is 100-continue.");
  }
  if (state_ == State::refused) return false;
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
