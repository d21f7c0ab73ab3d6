/// Turns the bytes of a connection into requests, without any I/O: feed it the bytes, check its state, answer, call
/// `next`. How the bytes are cut into pieces makes no difference.
///
/// The rules are strict: a server that guesses where a request ends can be made to disagree with a proxy in front of
/// it (request smuggling). A test compares the accepted requests with another parser, Boost.Beast's.
#pragma once

#include "net/chunk_decoder.hpp"
#include "net/head_scan.hpp"
#include "net/request.hpp"

#include <cstdint>
#include <string_view>

namespace stint::net {

struct ReaderLimits {
  std::size_t header_bytes_max = 16 << 10;
  std::size_t target_bytes_max = 8 << 10;
  std::size_t headers_max = 100;
  std::uint64_t body_bytes_max = 4 << 20;
};

/// Why a request is refused: a status and a sentence that quotes nothing of what the client sent.
struct Refusal {
  unsigned status = 0;
  std::string_view detail;  ///< a literal
};

class RequestReader {
 public:
  enum class State : std::uint8_t {
    head,     ///< needs more of the head, or the first byte
    body,     ///< the head is complete, needs more of the body
    done,     ///< the request is complete
    refused,  ///< nothing that follows on this connection can be trusted
  };

  explicit RequestReader(ReaderLimits limits) : limits_(limits) {}

  /// Returns how many of the bytes it consumed: all of them, or those up to the end of the head, so that the guard can
  /// refuse a request before its body is read, or up to the end of the request.
  std::size_t feed(std::string_view bytes);
  State state() const noexcept { return state_; }
  /// Some bytes of the request have arrived.
  bool begun() const noexcept { return begun_; }
  /// Valid from state `body` on.
  const Request& request() const noexcept { return request_; }
  const Refusal& refusal() const noexcept { return refusal_; }
  /// Discards the finished request and begins the next one.
  void next();

 private:
  std::size_t feed_head(std::string_view bytes);
  std::size_t feed_body(std::string_view bytes);
  std::size_t skip_empty_lines(std::string_view bytes);
  void parse_head();
  bool parse_line(std::string_view line);
  bool parse_fields(std::string_view lines);
  bool check_fields();
  bool check_length(std::string_view value);
  bool refuse(unsigned status, std::string_view detail) noexcept;  // returns false

  const ReaderLimits limits_;
  Request request_;
  Refusal refusal_;
  HeadScan scan_;
  ChunkDecoder chunks_;     // if it is chunked
  std::uint64_t left_ = 0;  // of the body, if it has a length
  State state_ = State::head;
  bool begun_ = false;
  bool chunked_ = false;
  std::uint8_t skipped_ = 0;
};

}  // namespace stint::net
