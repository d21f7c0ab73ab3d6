/// Turns the bytes of a connection into requests, without any I/O: feed it what came, look at its state, answer, ask
/// for the `next`. How the bytes are cut into pieces makes no difference.
///
/// The message syntax is Boost.Beast's parser's business; the rules on top are ours and strict, since a server that
/// guesses where a request ends can be made to disagree with a proxy before it (request smuggling).
#pragma once

#include "http/request.hpp"

#include <cstdint>
#include <memory>
#include <string_view>

namespace stint::http {

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

  explicit RequestReader(ReaderLimits limits);
  ~RequestReader();

  /// Takes what it can of `bytes` and says how much. Stops at the end of the head, so that who may not come in is told
  /// before the body is read. What it did not take must come again, with more behind it; if it takes nothing of
  /// `kLineBytesMax` bytes, it refuses.
  std::size_t feed(std::string_view bytes);
  State state() const noexcept { return state_; }
  /// Some of the request's bytes have come.
  bool begun() const noexcept { return begun_; }
  /// From `body` on.
  const Request& request() const noexcept { return request_; }
  const Refusal& refusal() const noexcept { return refusal_; }
  /// Forgets the request that is done and begins the next one.
  void next();

  static constexpr std::size_t kLineBytesMax = 4 << 10;  ///< of a chunk's head, and of the trailers together

 private:
  class Parser;

  std::size_t feed_head(std::string_view bytes);
  std::size_t feed_body(std::string_view bytes);
  std::size_t skip_empty_lines(std::string_view bytes);
  void parse_head();
  void check_head();
  bool check_fields();
  void refuse(unsigned status, std::string_view detail) noexcept;

  const ReaderLimits limits_;
  Request request_;
  Refusal refusal_;
  std::unique_ptr<Parser> parser_;
  State state_ = State::head;
  bool begun_ = false;
  std::uint8_t skipped_ = 0;
};

}  // namespace stint::http
