/// Server-sent events: a stream of small texts that browsers read by themselves and resume after the id they saw last.
#pragma once

#include "http/handler.hpp"

#include <string>
#include <string_view>

namespace stint::http {

struct Event {
  std::string id{};    ///< what the client sends back as `Last-Event-ID`; empty: none
  std::string name{};  ///< empty: "message"
  std::string data{};  ///< any number of lines
};
/// As it is sent. Line breaks in id and name are left out.
[[nodiscard]] std::string event_text(const Event& event);

class EventStream {
 public:
  explicit EventStream(Exchange& exchange) noexcept : exchange_(exchange) {}

  /// `co_return co_await events.run(tell(events));` Opens the stream and runs `body` until it ends or the client
  /// leaves. A comment goes out when there was nothing to say for a while, so that proxies keep the connection.
  [[nodiscard]] Task<Response> run(Task<> body);
  /// `Errc::closed` when the client is gone.
  [[nodiscard]] Task<Result<>> send(const Event& event);
  /// How long the client is to wait before it connects again.
  [[nodiscard]] Task<Result<>> say_retry(Duration after);

 private:
  Exchange& exchange_;
};

}  // namespace stint::http
