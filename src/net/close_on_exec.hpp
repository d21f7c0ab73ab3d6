/// Asio opens and accepts sockets without close-on-exec, and libcurl leaves it to us: without it every process that is
/// started meanwhile would inherit the connection and keep it open.
#pragma once

#include <fcntl.h>

namespace stint::net {

/// Of an Asio socket or acceptor that is open. Called by the thread that starts processes, before it starts another.
template <class Socket>
void close_on_exec(Socket& socket) noexcept {
  (void)::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

}  // namespace stint::net
