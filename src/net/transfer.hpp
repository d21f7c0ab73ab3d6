/// One HTTP request in libcurl: its phases, their limits, and what has arrived. Internal to this folder.
///
/// The phases: `connecting` (also the wait for a connection that is free), `sending`, from which on the server may have
/// executed the request, `waiting` for the reply's head, `streaming`. Each limit counts from the last progress of its
/// phase.
#pragma once

#include "net/curl_multi.hpp"
#include "net/http_client.hpp"
#include "net/name_lookup.hpp"
#include "net/route.hpp"
#include "stint/semaphore.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>

namespace stint::net {

/// What the client decided about a request before libcurl gets it.
struct Route {
  Route() = default;
  std::string proxy;  // empty: none
  std::string
      pinned;  // `host:port:address,…` for libcurl's cache of names; empty: nothing to resolve, or libcurl does it
  std::string ca_file;
  Duration connect_time{};  // what resolving the name has left of the limit; zero: no limit
  bool http2 = false;
  bool prior_knowledge = false;
};

/// One coroutine at a time may wait for it.
class Transfer final : private MultiClient, private Timer {
 public:
  static constexpr std::size_t kHeadBytesMax = 64 << 10;
  /// Unread bytes of a stream that shares its connection. It can't be paused: libcurl 7.88 stops reading for all of
  /// them.
  static constexpr std::size_t kUnreadMax = 8 << 20;

  /// `turn` is given back when the request has a connection.
  static Result<std::unique_ptr<Transfer>> start(CurlMulti& multi, Ask ask, const Route& route, Permit turn);
  ~Transfer();  // ends the request
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  const ReplyHead& head() const noexcept { return head_; }
  bool head_done() const noexcept { return head_done_; }
  /// Valid with the head.
  bool is_http2() const noexcept { return shared_; }
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

 private:
  enum class Phase : std::uint8_t { connecting, sending, waiting, streaming };
  /// Why we ended it ourselves.
  enum class Refusal : std::uint8_t {
    none,
    connect_limit,
    first_byte_limit,
    idle_limit,
    head_too_large,
    unread_too_large,
    sent_twice
  };

  Transfer(CurlMulti& multi, Ask ask);
  Result<> prepare(const Route& route);
  bool set_headers();
  void set_route(const Route& route);
  void set_method();
  void set_callbacks();
  template <class Value>
  void set(CURLoption option, Value value) noexcept {
    curl().curl_easy_setopt(easy_, option, value);
  }
  static int on_ready(void* self, char*, char*, int, int);
  static std::size_t on_read(char* to, std::size_t one, std::size_t count, void* self);
  static int on_seek(void* self, curl_off_t offset, int origin);
  static std::size_t on_header(const char* bytes, std::size_t one, std::size_t count, void* self);
  static std::size_t on_body(const char* bytes, std::size_t one, std::size_t count, void* self);
  bool take_header(std::string_view line);
  void take_head_end();
  std::size_t take_body(std::string_view bytes);

  Duration limit() const noexcept;
  void enter(Phase phase) noexcept;
  void progress() noexcept;
  void fire() noexcept override;
  void end(CURLcode code) noexcept override;
  void stop() noexcept;
  void leave_connection(bool flush) noexcept;
  void wake() noexcept;
  Error refusal() const;

  CurlMulti& multi_;
  Ask ask_;
  std::string shown_;  // the URL without secrets
  CURL* easy_ = nullptr;
  curl_slist* headers_ = nullptr;
  curl_slist* pinned_ = nullptr;
  Permit turn_;
  int port_ = 0;          // of our end of a connection that others may share; 0: none
  std::size_t sent_ = 0;  // bytes of the body that libcurl has taken
  std::size_t body_size_ = 0;
  ReplyHead head_;
  std::size_t head_bytes_ = 0;
  std::string bytes_;  // received, and not taken yet
  Arrival* waiter_ = nullptr;
  TimePoint since_{};  // the last progress
  Duration connect_time_{};
  CURLcode code_ = CURLE_OK;
  Phase phase_ = Phase::connecting;
  Refusal refusal_ = Refusal::none;
  bool added_ = false;
  bool head_done_ = false;
  bool shared_ = false;  // on an HTTP/2 connection, as far as known
  bool paused_ = false;
  bool ended_ = false;
  std::array<char, CURL_ERROR_SIZE> text_{};  // libcurl's message for a failure
};

}  // namespace stint::net
