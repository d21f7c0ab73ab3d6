#include "provider/server.hpp"

#include "net/close_on_exec.hpp"
#include "provider/connection.hpp"

#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>

#include <charconv>

namespace stint::provider {
namespace {

using asio::ip::tcp;
using boost::system::error_code;

constexpr int kBacklog = 1024;
constexpr Duration kAcceptPause = std::chrono::milliseconds(50);  // when the system has no descriptor left

Result<tcp::endpoint> parse_endpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  std::uint16_t port = 0;
  error_code error;
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    std::string_view host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    if (host == "localhost") host = "127.0.0.1";
    const asio::ip::address address = asio::ip::make_address(std::string(host), error);
    if (!error && problem == std::errc() && end == digits.data() + digits.size()) {
      if (address.is_loopback()) return tcp::endpoint(address, port);
      return fail(
          Errc::invalid,
          fmt::format("{}: not a loopback address. The provider has no authentication: give one like 127.0.0.1:0",
                      text));
    }
  }
  return fail(Errc::invalid, fmt::format("{}: give an address and a port, like 127.0.0.1:0", text));
}

}  // namespace

Server::Server(Reactor& reactor, Script script, Journal& journal)
    : reactor_(reactor),
      script_(std::move(script)),
      journal_(journal),
      began_(reactor.now()),
      acceptor_(reactor.io()) {}

Result<> Server::listen(std::string_view address) {
  STINT_TRY(const tcp::endpoint endpoint, parse_endpoint(address));
  error_code error;
  acceptor_.open(endpoint.protocol(), error);
  if (!error) net::close_on_exec(acceptor_);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(kBacklog, error);
  if (error) return fail(Errc::unavailable, fmt::format("can't listen on {}: {}", address, error.message()));
  return {};
}

std::string Server::address() const {
  error_code error;
  const tcp::endpoint endpoint = acceptor_.local_endpoint(error);
  const std::string host = endpoint.address().to_string();
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", host, endpoint.port())
                                    : fmt::format("{}:{}", host, endpoint.port());
}

Task<> Server::accept(Scope& connections) {
  while (true) {
    Result<Permit> permit = co_await slots_.acquire();
    if (!permit) co_return;
    auto accepted = co_await acceptor_.async_accept(use_task);
    auto& [error, socket] = accepted;
    if (error) {
      permit = fail(Errc::closed, "");  // frees the slot before the pause
      co_await sleep_for(kAcceptPause);
      continue;
    }
    net::close_on_exec(socket);
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    socket.non_blocking(true, ignored);
    connections.spawn(Connection::carry(*this, std::move(socket), std::move(*permit)));
  }
}

}  // namespace stint::provider
