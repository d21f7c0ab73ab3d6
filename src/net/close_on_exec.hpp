/// Sets close-on-exec on sockets. Asio opens and accepts sockets without it, and libcurl leaves it to us: otherwise
/// every process that is started meanwhile would inherit the connection and keep it open.
#pragma once

#include <fcntl.h>

namespace stint::net {

/// For an open Asio socket or acceptor. Called by the thread that starts processes, before it starts another.
template <class Socket>
void close_on_exec(Socket& socket) noexcept {
  (void)::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

}  // namespace stint::net
