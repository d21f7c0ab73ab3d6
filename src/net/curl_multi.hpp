/// libcurl's multi handle on the reactor: libcurl names sockets and one timer, we wait for them and report back.
/// Internal to this folder: it includes Asio and libcurl.
///
/// libcurl calls back only from inside our calls, and must not be called again from there. So its callbacks only record
/// and post; a transfer ends in the destructor of its owner, which runs from the run loop.
#pragma once

#include "net/curl_library.hpp"
#include "net/http_client.hpp"
#include "stint/asio.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <array>
#include <memory>
#include <string>

namespace stint::net {

class CurlMulti final : private Timer {
 public:
  static constexpr long kKeptConnectionsMax = 64;

  explicit CurlMulti(Reactor& reactor);
  ~CurlMulti();
  CurlMulti(const CurlMulti&) = delete;
  CurlMulti& operator=(const CurlMulti&) = delete;

  bool add(CURL* easy) noexcept;
  void remove(CURL* easy) noexcept;
  Reactor& reactor() noexcept { return reactor_; }

 private:
  struct Watch;
  /// Queued, to continue at once: the wheel's tick would cost a millisecond. Owns itself while it is queued.
  struct Kick final : Runnable {
    void run() noexcept override;
    void dropped() noexcept override;
    CurlMulti* multi = nullptr;  // null: destroyed
  };

  static int on_socket(CURL* easy, curl_socket_t socket, int what, void* self, void* watch);
  static int on_timer(CURLM* multi, long timeout, void* self);
  bool watch(curl_socket_t socket, int what, Watch* watch);
  static void wait(const std::shared_ptr<Watch>& watch, int direction);
  void act(curl_socket_t socket, int events) noexcept;
  void fire() noexcept override { act(CURL_SOCKET_TIMEOUT, 0); }

  Reactor& reactor_;
  CURLM* multi_;
  std::vector<std::shared_ptr<Watch>> watches_;  // shared with the handlers of pending waits
  Kick* kick_ = nullptr;                         // non-null if one is queued
  std::size_t transfers_ = 0;
};

/// One request. One coroutine at a time may wait for it.
class Transfer {
 public:
  static Result<std::unique_ptr<Transfer>> start(CurlMulti& multi, Ask ask);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  const ReplyHead& head() const noexcept { return head_; }
  bool head_done() const noexcept { return head_done_; }
  bool ended() const noexcept { return ended_; }
  bool has_bytes() const noexcept { return !bytes_.empty(); }
  std::string take_bytes();
  /// Nothing while it runs, and nothing on success.
  std::optional<Error> error() const;

  /// `co_await transfer.arrival()`: waits for bytes or the end.
  class Arrival final : public Leaf {
   public:
    explicit Arrival(Transfer& transfer) noexcept : transfer_(transfer) {}
    void await_suspend(std::coroutine_handle<>) noexcept {
      if (park()) transfer_.waiter_ = this;
    }
    void await_resume() const noexcept {}

   private:
    friend class Transfer;
    void cancel() noexcept override {
      if (transfer_.waiter_ != this) return;  // already woken
      transfer_.waiter_ = nullptr;
      complete();
    }
    Transfer& transfer_;
  };
  Arrival arrival() noexcept { return Arrival(*this); }

  void end(CURLcode code) noexcept;

 private:
  Transfer(CurlMulti& multi, Ask ask);
  Result<> prepare();
  bool set_headers();
  template <class Value>
  void set(CURLoption option, Value value) noexcept {
    curl().curl_easy_setopt(easy_, option, value);
  }
  static std::size_t on_header(const char* bytes, std::size_t one, std::size_t count, void* self);
  static std::size_t on_body(const char* bytes, std::size_t one, std::size_t count, void* self);
  bool take_header(std::string_view line);
  void wake() noexcept;

  CurlMulti& multi_;
  Ask ask_;
  CURL* easy_ = nullptr;
  curl_slist* headers_ = nullptr;
  ReplyHead head_;
  std::size_t head_bytes_ = 0;
  std::string bytes_;  // received, and not taken yet
  Arrival* waiter_ = nullptr;
  CURLcode code_ = CURLE_OK;
  bool added_ = false;
  bool head_done_ = false;
  bool paused_ = false;
  bool ended_ = false;
  std::array<char, CURL_ERROR_SIZE> text_{};  // libcurl's message for a failure
};

}  // namespace stint::net
