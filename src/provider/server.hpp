/// The simulated provider's server: HTTP/1.1 on loopback, one coroutine per connection. The script decides the answers
/// to model calls; `/_/` inspects the provider and switches faults while it runs (docs/provider.md).
///
/// Used on the reactor's thread only. Must outlive the scope that its connections run in.
#pragma once

#include "provider/journal.hpp"
#include "provider/script.hpp"
#include "provider/threads.hpp"
#include "stint/asio.hpp"
#include "stint/semaphore.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <string>
#include <string_view>

namespace stint::provider {

/// Bounds for one client.
struct ServerLimits {
  static constexpr std::uint32_t kConnectionsMax = 4096;
  static constexpr std::uint32_t kHeaderBytesMax = 64 << 10;
  static constexpr std::uint64_t kBodyBytesMax = 64 << 20;           // a conversation with pictures in it
  static constexpr std::size_t kReadAheadMax = 256 << 10;            // of the next request, while this one is answered
  static constexpr Duration kIdleMax = std::chrono::seconds(75);     // between two requests
  static constexpr Duration kRequestMax = std::chrono::seconds(60);  // from a request's first byte to its last
  static constexpr Duration kStallMax = std::chrono::seconds(60);    // a client that does not read
  static constexpr Duration kHangMax = std::chrono::hours(1);        // of a fault that is silence
};

class Server {
 public:
  Server(Reactor& reactor, Script script, Journal& journal);

  /// Binds to a loopback address, "127.0.0.1:0" or "[::1]:8080"; port 0 picks one. `Errc::invalid` for any other
  /// address, `Errc::unavailable` if the system refuses.
  [[nodiscard]] Result<> listen(std::string_view address);
  /// The address with the bound port.
  [[nodiscard]] std::string address() const;

  /// Accepts connections until it is stopped, and spawns each into `connections`.
  Task<> accept(Scope& connections);

  Reactor& reactor() noexcept { return reactor_; }
  Script& script() noexcept { return script_; }
  Journal& journal() noexcept { return journal_; }
  Threads& threads() noexcept { return threads_; }
  TimePoint began() const noexcept { return began_; }

 private:
  Reactor& reactor_;
  Script script_;
  Journal& journal_;
  Threads threads_;
  TimePoint began_;
  Semaphore slots_{"connections", ServerLimits::kConnectionsMax};
  asio::ip::tcp::acceptor acceptor_;
};

}  // namespace stint::provider
