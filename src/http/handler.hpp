/// The interface that a program implements to answer requests, and what a handler can do while it answers.
///
/// [life] A handler's task is part of its connection: it is stopped when the server is stopped and its time to drain
/// is over. It is *not* stopped when the client closes its side, because a client may half-close and still read. A
/// handler whose work only serves this client wraps it in `while_connected`; every stream is wrapped so.
#pragma once

#include "http/response.hpp"
#include "net/request.hpp"
#include "stint/combinators.hpp"

#include <string>

namespace stint::http {

using net::Request;

/// One request being answered. Owned by the connection; lives as long as the handler's task.
class Exchange {
 public:
  /// Runs `work` until it ends or the client leaves, whichever is first: `Errc::closed` if the client left, and the
  /// work has been stopped and joined by then. An HTTP/1.0 client that closes its sending half counts as left, since it
  /// can't be probed. Requests that arrive meanwhile wait for their turn.
  template <class T>
  [[nodiscard]] Task<stint::detail::Flat<T>> while_connected(Task<T> work) {
    auto first = co_await race(departure(), std::move(work));  // in this order: no work begins after the client left
    if (first.index() == 0) co_return fail(Errc::closed, "the client left");
    if constexpr (std::is_void_v<T>) {
      co_return Result<>();
    } else {
      co_return std::get<1>(std::move(first));
    }
  }

  /// Sends the head, then runs `body`, which sends pieces, until it ends or the client leaves or the server drains.
  /// `co_return co_await exchange.stream(head, tell(exchange));` Once per exchange. A HEAD request gets the head alone.
  [[nodiscard]] virtual Task<Response> stream(StreamHead head, Task<> body) = 0;
  /// Sends one piece of the stream. Ends when the system has taken all of it, so a slow reader delays only its own
  /// handler. `Errc::closed` when the client is gone or was cut because it does not read. One at a time.
  [[nodiscard]] virtual Task<Result<>> send(std::string bytes) = 0;

  /// Address and port of the client.
  [[nodiscard]] virtual std::string peer() const = 0;
  /// All other places are taken: this connection is in reserve, and its answer must be short.
  [[nodiscard]] virtual bool reserved() const noexcept = 0;
  /// The server drains: it takes no new connections and waits for this answer.
  [[nodiscard]] virtual bool draining() const noexcept = 0;

 protected:
  Exchange() = default;
  ~Exchange() = default;
  /// Ends when the client leaves. The connection reads ahead meanwhile, to detect that.
  [[nodiscard]] virtual Task<> departure() = 0;
};

class Handler {
 public:
  /// Called on the reactor's thread, once per complete request that the guard admitted. An exception becomes a 500
  /// without details.
  [[nodiscard]] virtual Task<Response> answer(const Request& request, Exchange& exchange) = 0;

 protected:
  Handler() = default;
  ~Handler() = default;
};

}  // namespace stint::http
