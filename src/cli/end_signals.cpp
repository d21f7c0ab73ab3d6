#include "cli/end_signals.hpp"

#include "os/fd.hpp"
#include "os/process.hpp"
#include "os/terminal.hpp"
#include "stint/combinators.hpp"

#include <csignal>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <variant>

namespace stint::cli {

EndSignals::EndSignals(Reactor& reactor) : signals_(reactor.io()) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (!os::ignores(signal)) signals_.add(signal);
  }
  if (os::ignores(SIGHUP)) return;
  for (const int stream : {STDERR_FILENO, STDOUT_FILENO, STDIN_FILENO}) {
    if (!os::terminal_size(stream)) continue;
    // Opened again, not duplicated: Asio makes it non-blocking, which would break writers that share the file
    // description (stdout, the shell).
    os::Fd own(
        ::open(("/proc/self/fd/" + std::to_string(stream)).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    if (!own) continue;
    boost::system::error_code error;
    terminal_.emplace(reactor.io());
    terminal_->assign(own.get(), error);
    if (!error) (void)own.release();
    if (error) terminal_.reset();
    return;
  }
}

Task<int> EndSignals::next() {
  while (true) {
    int signal = 0;
    if (terminal_) {
      auto first = co_await race(signalled(), closed());
      if (const auto* const number = std::get_if<0>(&first)) signal = *number;
      if (const auto* const number = std::get_if<1>(&first)) {
        signal = *number;
        terminal_.reset();
      }
    } else {
      signal = co_await signalled();
    }
    if (signal != SIGHUP || !std::exchange(hung_up_, true)) co_return signal;
  }
}

Task<int> EndSignals::signalled() {
  while (true) {
    const auto [error, signal] = co_await signals_.async_wait(use_task);
    if (!error) co_return signal;
  }
}

Task<int> EndSignals::closed() {
  (void)co_await terminal_->async_wait(asio::posix::stream_descriptor::wait_error, use_task);
  co_return SIGHUP;
}

}  // namespace stint::cli
