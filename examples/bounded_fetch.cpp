// Twenty pages over real sockets, never more than four at a time, and the results in the order of the requests.
//
// Look at `fetch_all`: that is all a program needs. Below it is the server it talks to, on loopback. It answers later
// pages sooner, so that replies arrive out of order, and counts how many callers it sees at once.
#include "stint/asio.hpp"
#include "stint/map_bounded.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

#include <cstdio>
#include <ranges>

using namespace stint;
using namespace std::chrono_literals;
using asio::ip::tcp;

constexpr int kPages = 20;
constexpr int kAtOnceMax = 4;

// [fetch]
Task<Result<std::string>> fetch(Reactor& reactor, tcp::endpoint server, int page) {
  tcp::socket socket(reactor.io());
  if (auto [error] = co_await socket.async_connect(server, use_task); error) {
    co_return fail(Errc::unavailable, "page " + std::to_string(page) + ": " + error.message());
  }
  const std::string request = std::to_string(page) + "\n";
  std::string reply;
  auto [unsent, sent] = co_await asio::async_write(socket, asio::buffer(request), use_task);
  auto [unread, read] = co_await asio::async_read_until(socket, asio::dynamic_buffer(reply), '\n', use_task);
  if (unsent || unread) co_return fail(Errc::unavailable, "page " + std::to_string(page) + ": the server hung up");
  co_return reply.substr(0, read - 1);
}

Task<Result<std::vector<std::string>>> fetch_all(Reactor& reactor, tcp::endpoint server) {
  const auto one = [&](int page) { return fetch(reactor, server, page); };
  co_return co_await map_bounded(std::views::iota(0, kPages), kAtOnceMax, one);
}
// [/fetch]

struct Callers {
  int now = 0, most = 0;
  std::vector<int> order;  // in which replies were sent
};

Task<> answer(tcp::socket socket, Callers& callers) {
  struct Count {
    explicit Count(Callers& all) : callers(all) { callers.most = std::max(callers.most, ++callers.now); }
    ~Count() { --callers.now; }
    Callers& callers;
  };
  std::string request;
  auto [error, read] = co_await asio::async_read_until(socket, asio::dynamic_buffer(request), '\n', use_task);
  if (error) co_return;
  const int page = std::stoi(request);
  {
    const Count count(callers);  // until the reply is sent: then the client may already send its next request
    co_await sleep_for((kPages - page) * 1ms);
  }
  callers.order.push_back(page);
  const std::string reply = "page " + std::to_string(page) + "\n";
  (void)co_await asio::async_write(socket, asio::buffer(reply),
                                   use_task);  // a client that has disconnected needs no reply
}

Task<> serve(tcp::acceptor& acceptor, Callers& callers) {
  (void)co_await with_scope([&](Scope& scope) -> Task<> {
    while (true) {
      auto [error, socket] = co_await acceptor.async_accept(use_task);
      if (!error) scope.spawn(answer(std::move(socket), callers));
    }
  });  // until it is stopped
}

int main() {
  Reactor reactor;
  tcp::acceptor acceptor(reactor.io(), tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  Callers callers;
  std::vector<std::string> replies;
  auto program = [&]() -> Task<> {
    // The server runs as long as the client: the loser of a race is stopped, and its sockets are closed.
    auto first = co_await race(fetch_all(reactor, acceptor.local_endpoint()), serve(acceptor, callers));
    if (auto* pages = std::get_if<0>(&first); pages != nullptr && *pages) replies = std::move(**pages);
  };
  if (const Result<> ended = reactor.run(program()); !ended) return 1;

  std::printf("replies sent in this order:");
  for (const int page : callers.order) std::printf(" %d", page);
  std::printf("\nresults in this order:     ");
  bool in_order = replies.size() == kPages;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    std::printf(" %s", replies[i].substr(5).c_str());
    in_order = in_order && replies[i] == "page " + std::to_string(i);
  }
  std::printf("\nthe server saw at most %d callers at once; the limit is %d\n", callers.most, kAtOnceMax);
  return in_order && callers.most > 1 && callers.most <= kAtOnceMax ? 0 : 1;
}
