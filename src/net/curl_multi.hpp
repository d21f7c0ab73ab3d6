/// libcurl's multi handle on the reactor: libcurl names sockets and one timer, we wait for them and report back.
/// Internal to this folder: it includes Asio and libcurl.
///
/// The sockets are in an epoll set of our own; Asio waits for the set. A socket so costs nothing between two changes of
/// what libcurl waits for, and an event costs the same whatever the number of sockets.
///
/// libcurl calls back only from inside our calls, and must not be called again from there. So its callbacks only record
/// and post; a transfer ends in the destructor of its owner or by its timer, both from the run loop.
#pragma once

#include "net/curl_library.hpp"
#include "stint/asio.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace stint::net {

class CurlMulti;

/// What a multi handle reports to: one request.
class MultiClient {
 public:
  virtual void end(CURLcode code) noexcept = 0;

 protected:
  MultiClient() = default;
  ~MultiClient() = default;
};

struct MultiOptions {
  MultiOptions() = default;
  long connections_per_host_max = 0;
  long connections_max = 0;
  long connections_kept_max = 0;
  long streams_per_connection_max = 0;
};

class CurlMulti final : private Timer {
 public:
  static constexpr int kEventsPerWake = 64;  // then others on the reactor have their turn

  static Result<std::unique_ptr<CurlMulti>> make(Reactor& reactor, const MultiOptions& options);
  ~CurlMulti();
  CurlMulti(const CurlMulti&) = delete;
  CurlMulti& operator=(const CurlMulti&) = delete;

  /// `easy` has its MultiClient as CURLOPT_PRIVATE.
  bool add(CURL* easy) noexcept;
  /// Ends its transfer, if it is still running: closes the socket, or resets the stream of a shared connection.
  void remove(CURL* easy) noexcept;
  /// Streams of one connection, which its local port names, know of each other: `leave` soon sends what libcurl has
  /// kept back, the reset of a stream that was removed, by way of one that stays. Once for many.
  void join(int port, CURL* easy);
  void leave(int port, CURL* easy, bool flush);
  Reactor& reactor() noexcept { return reactor_; }

 private:
  CurlMulti(Reactor& reactor, const MultiOptions& options, int epoll);
  /// Queued, to continue at once: the wheel's tick would cost a millisecond. Owns itself while it is queued.
  struct Kick final : Runnable {
    void run() noexcept override;
    void dropped() noexcept override;
    CurlMulti* multi = nullptr;  // null: destroyed
  };

  static int on_socket(CURL* easy, curl_socket_t socket, int what, void* self, void* known);
  static int on_timer(CURLM* multi, long timeout, void* self);
  void kick() noexcept;
  void kicked() noexcept;
  void flush(int port) noexcept;
  bool watch(curl_socket_t socket, int what, bool known) noexcept;
  void wait();
  void take_events();
  void act(curl_socket_t socket, int events) noexcept;
  void fire() noexcept override { act(CURL_SOCKET_TIMEOUT, 0); }

  Reactor& reactor_;
  CURLM* multi_;
  asio::posix::stream_descriptor epoll_;
  std::shared_ptr<CurlMulti*>
      self_;                 // shared with the handler of the wait, which Asio may keep longer; null: destroyed
  std::size_t sockets_ = 0;  // watched
  bool waiting_ = false;
  Kick* kick_ = nullptr;                                 // non-null if one is queued
  std::unordered_map<int, std::vector<CURL*>> streams_;  // by local port
  std::vector<int> unflushed_;                           // ports; each once in a row
  std::size_t transfers_ = 0;
};

}  // namespace stint::net
