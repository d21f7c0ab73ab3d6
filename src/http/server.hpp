/// An HTTP/1.1 server on the reactor's thread: connections, limits, refusals; what is answered is the handler's
/// business. One coroutine per connection; an idle connection holds no buffer.
///
/// Everything that a client can use up has a bound in `ServerOptions`. Whoever is too slow, too large or not allowed in
/// is told so with a problem document where that is possible, and counted.
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

  /// Then the longest idle one goes, or the one whose head is on its way for longest. If all are at work, the new one
  /// gets one of the places in reserve, or is told 503.
  std::size_t connections_max = 1024;
  /// For probes and control while all other places are taken, by streams for example: a connection here is closed after
  /// its answer, and gets neither a stream nor the end of a run.
  std::size_t connections_reserved = 16;
  /// So many connections go on before the rest of the program has its turn: a thousand busy ones do not hold up runs.
  std::size_t connections_per_turn = 4;
  /// So many requests that a client sent together are answered in one turn of its connection.
  std::size_t requests_per_turn = 8;
  /// So many GETs are answered at once, streams, waits and probes apart: what they ask of the store stands before what
  /// runs ask. Changes are not bounded, since the store takes those that come together as one.
  std::uint32_t reads_at_once_max = 8;
  net::ReaderLimits request;
  Duration header_time_max = std::chrono::seconds(10);  ///< from a request's first byte to the end of its head
  Duration body_time_max = std::chrono::seconds(10);    ///< of the body, and besides as long as …
  std::size_t body_bytes_per_second_min = 16 << 10;     ///< … what came would take at this speed
  Duration idle_time_max = std::chrono::seconds(75);    ///< between two requests
  Duration write_time_max = std::chrono::seconds(30);   ///< without the client taking a byte
  Duration heartbeat_every = std::chrono::seconds(15);  ///< of a stream that has nothing to say
  Duration drain_time_max = std::chrono::seconds(5);    ///< for answers under way when the server is stopped

  std::string token;                       ///< empty: none is asked for, which only loopback may do
  std::vector<std::string> allowed_hosts;  ///< names beside loopback's and the address, without port
  std::function<bool(std::string_view)> other_token;
  std::function<bool(const Request&)> is_open;  ///< needs no token

  /// For the `Date` header; none without it.
  std::function<std::chrono::system_clock::time_point()> wall_clock;
};

struct ServerStats {
  std::size_t connections = 0;  ///< now
  std::size_t idle = 0;         ///< of them, between two requests
  std::size_t streams = 0;      ///< of them, being sent a stream
  std::uint64_t connections_total = 0;
  std::uint64_t connections_refused = 0;   ///< told 503: all places were in use
  std::uint64_t connections_evicted = 0;   ///< idle, or with half a head, closed to make room
  std::uint64_t connections_reserved = 0;  ///< answered from the reserve
  std::uint64_t accept_failures = 0;       ///< the system had no descriptor
  std::uint64_t requests = 0;              ///< given to the handler
  std::array<std::uint64_t, 6> answers{};  ///< by class of status: `answers[4]` is 4xx, refusals among them
  std::uint64_t refusals = 0;              ///< malformed, too large, not allowed in
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

  /// Binds and gives the port. `Errc::denied` for an address beyond loopback without a token, `Errc::invalid` for what
  /// is no address, `Errc::unavailable` if the system refuses.
  [[nodiscard]] Result<std::uint16_t> listen();
  /// "127.0.0.1:7717", after listen().
  [[nodiscard]] std::string address() const;

  /// Until its scope is cancelled. Then takes no new connections, closes the idle ones, ends streams, and waits for
  /// answers under way until `drain_time_max` is over.
  [[nodiscard]] Task<> serve();

  [[nodiscard]] const ServerStats& stats() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stint::http
