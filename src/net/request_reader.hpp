/// Turns the bytes of a connection into requests, without any I/O: feed it what came, look at its state, answer, ask
/// for the `next`. How the bytes are cut into pieces makes no difference.
///
/// The rules are strict, since a server that guesses where a request ends can be made to disagree with a proxy before
/// it (request smuggling). A test compares what is let through with another parser, Boost.Beast's.
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

/// Why a request is not answered: a status and a sentence that holds nothing of what the client sent.
struct Refusal {
  unsigned status = 0;
  std::string_view detail;  ///< a literal
};

class RequestReader {
 public:
  enum class State : std::uint8_t {
    head,     ///< wants more of the head, or the first byte
    body,     ///< the head is there, wants more of the body
    done,     ///< the request is whole
    refused,  ///< and nothing that follows on this connection can be trusted
  };

  explicit RequestReader(ReaderLimits limits) : limits_(limits) {}

  /// Says how many of the bytes it took: all of them, or those up to the end of the head, so that who may not come in
  /// is told before the body is read, or up to the end of the request.
  std::size_t feed(std::string_view bytes);
  State state() const noexcept { return state_; }
  /// Some of the request's bytes have come.
  bool begun() const noexcept { return begun_; }
  /// From `body` on.
  const Request& request() const noexcept { return request_; }
  const Refusal& refusal() const noexcept { return refusal_; }
  /// Forgets the request that is done and begins the next one.
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
  bool refuse(unsigned status, std::string_view detail) noexcept;  // false, as what was to be done

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
