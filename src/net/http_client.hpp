/// HTTP requests: libcurl, driven by the reactor. For the command line, and for calls to models.
///
/// Used on the reactor's thread only. A request that is stopped (its scope is cancelled, its deadline passes) ends at
/// once, and its socket is closed. Connections are kept and reused.
#pragma once

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
  Duration connect_time_max = std::chrono::seconds(10);
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
  /// The bytes received since the last call; an empty text at the end. Back-pressure: a slow reader slows the sender
  /// down; at most `kBufferedMax` bytes and one read are buffered.
  [[nodiscard]] Task<Result<std::string>> next();

  static constexpr std::size_t kBufferedMax = 256 << 10;

 private:
  friend class HttpClient;
  explicit ReplyStream(std::unique_ptr<Transfer> transfer) noexcept;
  std::unique_ptr<Transfer> transfer_;
};

/// A status of 400 and more is a reply like any other; `stint/http_status.hpp` decides what it means for a retry.
/// Failures: `invalid` (malformed URL), `denied` (no libcurl, or an untrusted certificate), `timed_out` and
/// `unavailable` (`Retry::safe` before anything was sent, else `unknown`), `failed` (a reply that is too large).
class HttpClient {
 public:
  explicit HttpClient(Reactor& reactor);
  ~HttpClient();  // no request in progress; before the reactor, or in a frame that the reactor destroys

  [[nodiscard]] Task<Result<Reply>> ask(Ask ask);
  /// Ends when the head of the reply has arrived.
  [[nodiscard]] Task<Result<ReplyStream>> open(Ask ask);

 private:
  friend class Transfer;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stint::net
