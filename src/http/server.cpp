#include "http/server.hpp"

#include "http/connection.hpp"
#include "net/close_on_exec.hpp"

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>

#include <netinet/tcp.h>

namespace stint::http {
namespace {

using asio::ip::tcp;
using boost::system::error_code;
using Acceptor = asio::basic_socket_acceptor<tcp, asio::io_context::executor_type>;

constexpr int kBacklog = 1024;
constexpr Duration kAcceptPause = std::chrono::milliseconds(50);  // when the system has no descriptor left
constexpr std::size_t kTurnedAwayMax = 64;  // answered with 503 at the same time; more are just closed

using UserTimeout = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;
using KeepIdle = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;

/// A host that loses power sends no FIN: keep-alive probes detect that.
void watch_far_peer(Socket& socket, Duration limit) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(limit);
  const auto count = static_cast<int>(std::max<std::int64_t>(seconds.count(), 1));
  error_code ignored;
  socket.set_option(Socket::keep_alive(true), ignored);
  socket.set_option(KeepIdle(count), ignored);
  socket.set_option(UserTimeout(count * 1000), ignored);
}

}  // namespace

class Server::Impl final : private Timer {
 public:
  Impl(Reactor& reactor, Handler& handler, ServerOptions options)
      : state(reactor, handler, std::move(options)), acceptor(reactor.io().get_executor()) {}

  Result<std::uint16_t> listen();
  Task<> run(CancelToken& until);
  bool serving() const noexcept { return connections_ != nullptr; }

  ServerState state;
  Acceptor acceptor;

 private:
  Task<> accept(Scope& connections);
  void take(Scope& connections, Socket socket, const tcp::endpoint& peer);
  void begin_drain();
  void fire() noexcept override { connections_->cancel(Reason::shutdown); }

  Scope* connections_ = nullptr;  // while it runs
};

Result<std::uint16_t> Server::Impl::listen() {
  const ServerOptions& options = state.options;
  error_code error;
  const auto address = asio::ip::make_address(options.address == "localhost" ? "127.0.0.1" : options.address, error);
  if (error) return fail(Errc::invalid, fmt::format("{} is not an IP address to listen on", options.address));
  if (!address.is_loopback() && options.token.empty()) {
    return fail(Errc::denied,
                fmt::format("{} is not a loopback address: listening there needs a token", options.address));
  }
  const tcp::endpoint endpoint(address, options.port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) net::close_on_exec(acceptor);
  if (!error) acceptor.set_option(Acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(kBacklog, error);
  if (!error) acceptor.non_blocking(true, error);
  if (error) {
    return fail(Errc::unavailable,
                fmt::format("can't listen on {}:{}: {}", options.address, options.port, error.message()));
  }
  return acceptor.local_endpoint(error).port();
}

/// Shielded from the scope's cancel, which starts the drain.
Task<> Server::Impl::run(CancelToken& until) {
  ScopeOptions options;
  options.cancel_on_error = false;
  const auto body = [this, &until](Scope& connections) -> Task<> {
    connections_ = &connections;
    (void)co_await race(accept(connections), state.turns.run(), awaited(cancelled(until)));  // until the last
    begin_drain();
    state.reactor.arm(*this, state.reactor.now() + state.options.drain_time_max);
  };
  (void)co_await with_scope(options, body);
  state.reactor.disarm(*this);
  connections_ = nullptr;
}

void Server::Impl::begin_drain() {
  error_code ignored;
  acceptor.close(ignored);
  state.draining = true;
  state.turns.open();
  state.heads.for_each([](Connection& connection) { connection.drain(); });
  state.idle.for_each([](Connection& connection) { connection.drain(); });
  state.busy.for_each([](Connection& connection) { connection.drain(); });
}

Task<> Server::Impl::accept(Scope& connections) {
  while (true) {
    // Waits before it accepts: without a descriptor left accept(2) fails even if no connection is pending.
    const auto [stopped] = co_await acceptor.async_wait(Acceptor::wait_read, use_task);
    error_code error = stopped;
    tcp::endpoint peer;
    Socket socket(state.reactor.io().get_executor());
    if (!error) acceptor.accept(socket, peer, error);
    if (!error) {
      take(connections, std::move(socket), peer);
    } else if (error != asio::error::would_block && error != asio::error::connection_aborted) {
      // Mostly no descriptors: evicting an idle connection returns one, and the pause keeps this from spinning.
      ++state.stats.accept_failures;
      if (Connection* const gone = state.evictable()) gone->evict();
      co_await sleep_for(kAcceptPause);
    }
  }
}

void Server::Impl::take(Scope& connections, Socket socket, const tcp::endpoint& peer) {
  net::close_on_exec(socket);
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.non_blocking(true, ignored);
  if (!peer.address().is_loopback()) watch_far_peer(socket, state.options.write_time_max);
  ServerStats& stats = state.stats;
  bool in_reserve = false;
  if (stats.connections >= state.options.connections_max) {
    Connection* const gone = state.evictable();
    // The new connection inherits the kind of place of the evicted one: one in reserve stays in reserve.
    in_reserve = gone != nullptr ? gone->reserved() : state.reserved < state.options.connections_reserved;
    if (gone != nullptr) {
      gone->evict();
    } else if (!in_reserve) {
      ++stats.connections_refused;
      if (state.turned_away == kTurnedAwayMax) return;
      connections.spawn(Connection::turn_away(state, std::move(socket), peer, Place(state.turned_away)));
      return;
    }
  }
  if (in_reserve) {
    ++stats.connections_reserved;
    connections.spawn(Connection::carry_reserved(state, std::move(socket), peer, Place(state.reserved)));
    return;
  }
  connections.spawn(Connection::carry(state, std::move(socket), peer, Place(stats.connections)));
}

Server::Server(Reactor& reactor, Handler& handler, ServerOptions options)
    : impl_(std::make_unique<Impl>(reactor, handler, std::move(options))) {}
Server::~Server() { STINT_ASSERT(!impl_->serving()); }

Result<std::uint16_t> Server::listen() { return impl_->listen(); }

std::string Server::address() const {
  error_code error;
  const tcp::endpoint endpoint = impl_->acceptor.local_endpoint(error);
  const std::string host = endpoint.address().to_string();
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", host, endpoint.port())
                                    : fmt::format("{}:{}", host, endpoint.port());
}

Task<> Server::serve() {
  CancelToken& token = co_await current_token();
  co_await shield(impl_->run(token));
}

const ServerStats& Server::stats() const noexcept { return impl_->state.stats; }

}  // namespace stint::http
