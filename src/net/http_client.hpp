/// HTTP requests: libcurl, driven by the reactor. For the command line, and for calls to models.
///
/// Used on the reactor's thread only. A request that is stopped (its scope is cancelled, its deadline passes, its
/// stream is destroyed) ends at once, in every phase: before stop returns, its socket is closed, or its HTTP/2 stream
/// is reset. Connections are kept and reused; over TLS a request uses HTTP/2 where the server offers it, and shares a
/// connection.
#pragma once

#include "net/name_lookup.hpp"
#include "net/route.hpp"
#include "stint/error.hpp"
#include "stint/task.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint {
class Reactor;
}

namespace stint::net {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Ask {
  std::string method = "GET";
  std::string url;  ///< http or https; errors don't show what follows `?`
  Headers headers{};
  std::string body{};
  std::size_t reply_bytes_max = 16 << 20;  ///< of a reply that is read whole
  // Limits; zero: none. Each failure says which one passed.
  Duration connect_time_max = std::chrono::seconds(10);  ///< name, connection, TLS; also the wait for a free connection
  Duration first_byte_time_max{};  ///< from the last byte of the request that was sent to the first of the reply
  Duration idle_time_max{};        ///< between two pieces of the reply
};

struct ReplyHead {
  int status = 0;
  Headers headers{};
  /// The first header of that name; names ignore case.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept;
};

struct Reply : ReplyHead {
  std::string body{};
};

class Transfer;

/// A reply that is read in pieces. Its destructor ends the request: a socket with an unread rest is closed.
class ReplyStream {
 public:
  ReplyStream(ReplyStream&&) noexcept;
  ReplyStream& operator=(ReplyStream&&) noexcept;
  ~ReplyStream();

  [[nodiscard]] const ReplyHead& head() const noexcept;
  /// The bytes received since the last call; an empty text at the end. Back-pressure: over HTTP/1.1 a slow reader slows
  /// the sender down, and at most `kBufferedMax` bytes and one read are buffered. An HTTP/2 stream can't be paused
  /// without its neighbours: it fails when 8 MiB are unread.
  [[nodiscard]] Task<Result<std::string>> next();

  static constexpr std::size_t kBufferedMax = 256 << 10;

 private:
  friend class HttpClient;
  explicit ReplyStream(std::unique_ptr<Transfer> transfer) noexcept;
  std::unique_ptr<Transfer> transfer_;
};

struct ClientOptions {
  ClientOptions() = default;
  std::optional<std::string> proxy{};  ///< for every request; empty: none; not set: the environment decides (route.hpp)
  std::string ca_file{};               ///< certificates to trust; empty: SSL_CERT_FILE, or the system's
  Variables variables = process_variables();
  BlockingLookup lookup = blocking_lookup;
  bool http2 = true;                     ///< where a server offers it in TLS
  bool http2_prior_knowledge = false;    ///< HTTP/2 without asking, and without TLS
  long connections_per_host_max = 4096;  ///< more requests wait; that counts as connecting
  long connections_max = 16'384;
  long connections_kept_max = 64;        ///< idle ones
  long streams_per_connection_max = 32;  ///< libcurl looks at every stream of a connection whenever bytes arrive on it

  [[nodiscard]] static Variables process_variables();
};

/// A status of 400 and more is a reply like any other; `stint/http_status.hpp` decides what it means for a retry.
/// Failures: `invalid` (malformed URL), `denied` (no libcurl, or an untrusted certificate), `timed_out` (a limit) and
/// `unavailable` (`Retry::safe` before anything was sent, else `unknown`), `failed` (a reply that is too large).
/// A request that is not idempotent is never sent twice, also not when a kept connection turns out to be dead.
/// No failure contains a query, a password, a header or a body. Replies are not decompressed: none is asked for.
class HttpClient {
 public:
  explicit HttpClient(Reactor& reactor, ClientOptions options = {});
  ~HttpClient();  // no request in progress; before the reactor, or in a frame that the reactor destroys

  /// To a server that may speak HTTP/2: more requests wait until one of these has a connection, or has found one with
  /// room. Else each of a burst would open its own.
  static constexpr std::uint32_t kConnectingMax = 4;

  [[nodiscard]] Task<Result<Reply>> ask(Ask ask);
  /// Ends when the head of the reply has arrived.
  [[nodiscard]] Task<Result<ReplyStream>> open(Ask ask);

 private:
  friend class Transfer;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stint::net
