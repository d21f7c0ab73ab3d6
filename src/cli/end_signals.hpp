/// What ends a command from outside: SIGINT, SIGTERM, SIGHUP, and its terminal when that is closed. The kernel sends
/// SIGHUP only to the session of a terminal; a command that merely prints to it would go on for a closed window, so the
/// end of the terminal counts as a SIGHUP. What the caller ignores (nohup) stays ignored. Own thread only.
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

  /// The number of the next one; SIGHUP at most once. One waiter at a time.
  Task<int> next();

 private:
  Task<int> signalled();
  Task<int> closed();

  asio::signal_set signals_;
  std::optional<asio::posix::stream_descriptor> terminal_;  // none: there is none, or it is closed
  bool hung_up_ = false;
};

}  // namespace stint::cli
