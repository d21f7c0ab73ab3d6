/// Server-sent events: a stream of small texts that browsers read natively and resume after the last id they saw.
#pragma once

#include "http/handler.hpp"

#include <string>
#include <string_view>

namespace stint::http {

struct Event {
  std::string id{};    ///< the client sends it back as `Last-Event-ID`; empty: none
  std::string name{};  ///< empty: "message"
  std::string data{};  ///< any number of lines
};
/// The encoded event. Line breaks in id and name are removed.
[[nodiscard]] std::string event_text(const Event& event);

class EventStream {
 public:
  explicit EventStream(Exchange& exchange) noexcept : exchange_(exchange) {}

  /// `co_return co_await events.run(tell(events));` Opens the stream and runs `body` until it ends or the client
  /// leaves. Sends a comment as heartbeat when the stream was silent for a while, so that proxies keep the connection.
  [[nodiscard]] Task<Response> run(Task<> body);
  /// `Errc::closed` when the client is gone.
  [[nodiscard]] Task<Result<>> send(const Event& event);
  /// Events that are encoded already.
  [[nodiscard]] Task<Result<>> send_text(std::string events) { return exchange_.send(std::move(events)); }
  /// How long the client should wait before it reconnects.
  [[nodiscard]] Task<Result<>> send_retry(Duration after);

 private:
  Exchange& exchange_;
};

}  // namespace stint::http
