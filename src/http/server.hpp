/// An HTTP/1.1 server on the reactor's thread: connections, limits, refusals; the handler makes the answers.
/// One coroutine per connection; an idle connection holds no buffer.
///
/// Everything that a client can use up has a bound in `ServerOptions`. A client that is too slow, too large or not
/// authorized gets a problem document where that is possible, and is counted.
#pragma once

#include "http/guard.hpp"
#include "http/handler.hpp"
#include "stint/error.hpp"
#include "stint/task.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace stint {
class Reactor;
}

namespace stint::http {

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: the system picks one

  /// When reached, the longest idle connection is closed, or the one with the oldest incomplete head. If all are busy,
  /// the new one gets a place in reserve, or 503.
  std::size_t connections_max = 1024;
  /// For probes and control while all other places are taken, by streams for example: such a connection is closed after
  /// its answer, and gets neither a stream nor the end of a run.
  std::size_t connections_reserved = 16;
  /// Connections that proceed before the rest of the program has its turn: a thousand busy ones don't delay runs.
  std::size_t connections_per_turn = 4;
  /// Pipelined requests that are answered in one turn of a connection.
  std::size_t requests_per_turn = 8;
  /// GETs answered at once, not counting streams, waits and probes: their queries stand before those of runs in the
  /// store's queue. Changes are not bounded, since the store commits concurrent ones together.
  std::uint32_t reads_at_once_max = 8;
  net::ReaderLimits request;
  Duration header_time_max = std::chrono::seconds(10);  ///< from a request's first byte to the end of its head
  Duration body_time_max = std::chrono::seconds(10);    ///< for the body, plus the time …
  std::size_t body_bytes_per_second_min = 16 << 10;     ///< … that the received bytes take at this rate
  Duration idle_time_max = std::chrono::seconds(75);    ///< between two requests
  Duration write_time_max = std::chrono::seconds(30);   ///< without the client reading a byte
  Duration heartbeat_every = std::chrono::seconds(15);  ///< on a silent stream
  Duration drain_time_max = std::chrono::seconds(5);    ///< for answers in progress when the server is stopped

  std::string token;                       ///< empty: not required, which only loopback allows
  std::vector<std::string> allowed_hosts;  ///< names besides loopback's and the address, without port
  std::function<bool(std::string_view)> other_token;
  std::function<bool(const Request&)> is_open;  ///< needs no token

  /// For the `Date` header; without it the header is omitted.
  std::function<std::chrono::system_clock::time_point()> wall_clock;
};

struct ServerStats {
  std::size_t connections = 0;  ///< now
  std::size_t idle = 0;         ///< of them, between two requests
  std::size_t streams = 0;      ///< of them, with an open stream
  std::uint64_t connections_total = 0;
  std::uint64_t connections_refused = 0;   ///< with 503: all places were in use
  std::uint64_t connections_evicted = 0;   ///< idle, or with an incomplete head, closed to make room
  std::uint64_t connections_reserved = 0;  ///< served from the reserve
  std::uint64_t accept_failures = 0;       ///< no descriptor left
  std::uint64_t requests = 0;              ///< passed to the handler
  std::array<std::uint64_t, 6> answers{};  ///< by class of status: `answers[4]` is 4xx, including refusals
  std::uint64_t refusals = 0;              ///< malformed, too large, not authorized
  std::uint64_t cut_header = 0;            ///< too slow with the head …
  std::uint64_t cut_body = 0;              ///< … the body …
  std::uint64_t cut_write = 0;             ///< … or reading the answer
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
};

class Server {
 public:
  Server(Reactor& reactor, Handler& handler, ServerOptions options);
  ~Server();  // after serve() has ended

  /// Binds and returns the port. `Errc::denied` for an address beyond loopback without a token, `Errc::invalid` for an
  /// invalid address, `Errc::unavailable` if the system refuses.
  [[nodiscard]] Result<std::uint16_t> listen();
  /// "127.0.0.1:7717", after listen().
  [[nodiscard]] std::string address() const;

  /// Serves until its scope is cancelled. Then accepts no new connections, closes the idle ones, ends streams, and
  /// waits for answers in progress up to `drain_time_max`.
  [[nodiscard]] Task<> serve();

  [[nodiscard]] const ServerStats& stats() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stint::http
