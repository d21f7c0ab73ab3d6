/// Signals that end a command: SIGINT, SIGTERM, SIGHUP, and the close of its terminal, which counts as SIGHUP. The
/// kernel sends SIGHUP only to the terminal's session; a command that merely prints to the terminal would keep running
/// for a closed window. A signal that the caller ignores (nohup) stays ignored. Own thread only.
#pragma once

#include "stint/asio.hpp"
#include "stint/task.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>

#include <optional>

namespace stint::cli {

class EndSignals {
 public:
  explicit EndSignals(Reactor& reactor);
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  /// Waits for the next signal and returns its number; SIGHUP at most once. One waiter at a time.
  Task<int> next();

 private:
  Task<int> signalled();
  Task<int> closed();

  asio::signal_set signals_;
  std::optional<asio::posix::stream_descriptor> terminal_;  // none: no terminal, or it is closed
  bool hung_up_ = false;
};

}  // namespace stint::cli
